import { describe, expect, it } from 'vitest'
import { engineRunSchema, turnSchema } from '../../../lib/session/document.ts'
import { isInterrupted, judgeTurn } from '../../../lib/session/judge.ts'
import { aNomination, aReport, aRun, failed, type Of, passed, validation } from './results.ts'
import { setOut } from './road.ts'

type Code = Of<'Code'>
const reset = '2030-01-01T01:00:00.000Z'
const work = { changed: true }
const none = { changed: false }
const gone = { exit_code: null, signal: 'SIGSEGV' }

/** Every way in which a run can end, with what it comes to when nothing was reported. */
const ends = {
  finished: [
    [{ exit_code: 0, ...work }, 'success', 2],
    [{ exit_code: 0, ...none }, 'failed', 2],
    [{ exit_code: 0, ...none, nomination: aNomination() }, 'success', 2],
  ],
  failed: [
    [{ exit_code: 1, ...work }, 'failed', 2],
    [{ exit_code: 1, ...none }, 'failed', 2],
    [{ ...gone, ...work }, 'unknown', 3],
    [{ ...gone, ...none }, 'failed', 3],
  ],
  unavailable: [
    [{ exit_code: 127, ...none }, 'agent_unavailable', 2],
    [{ exit_code: null, ...work }, 'agent_unavailable', 2],
  ],
  killed: [
    [{ exit_code: 137, ...none }, 'resource_killed', 2],
    [{ exit_code: null, signal: 'SIGKILL', ...work }, 'resource_killed', 2],
  ],
  timed_out: [[{ ...gone, ...work }, 'timed_out', 2]],
  tree_too_large: [[{ ...gone, ...work }, 'resource_killed', 2]],
  output_too_large: [[{ ...gone, ...none }, 'resource_killed', 2]],
  out_of_room: [[{ exit_code: 1, ...none }, 'resource_killed', 2]],
  over_budget: [[{ ...gone, ...work }, 'over_budget', 2]],
  cancelled: [
    [{ ...gone, ...work }, 'unknown', 3],
    [{ ...gone, ...none }, 'failed', 3],
  ],
} as const satisfies Record<Code['status'], readonly (readonly [Partial<Code>, string, number])[]>

const cases = engineRunSchema.shape.status.options.flatMap((status) =>
  ends[status].map((end) => ({ status, more: end[0], judged: end[1], layer: end[2] })),
)

describe('an engine’s turn', () => {
  it.each(cases)('that $status with $more is $judged, by layer $layer', ({ status, more, judged, layer }) => {
    const turn = judgeTurn(3, aRun({ status, ...more }))
    expect(turn).toMatchObject({ iteration: 3, status: judged, decided_by_layer: layer, reset_at: null })
    expect(turn.reason).not.toBe('')
  })

  it.each(
    cases.flatMap((end) =>
      (['success', 'failed', 'rate_limited', 'auth_required'] as const).map((said) => ({ ...end, said })),
    ),
  )('that $status but reported $said is what it reported, by layer 1', ({ status, more, said }) => {
    const report = aReport(said, said === 'rate_limited' ? reset : null)
    expect(judgeTurn(1, aRun({ status, ...more, report }))).toEqual({
      ...{ iteration: 1, status: said, decided_by_layer: 1, reason: `said ${said}` },
      reset_at: said === 'rate_limited' ? reset : null,
    })
  })

  it('that reported without a reason has one all the same', () => {
    const report = { ...aReport('failed'), reason: '' }
    expect(judgeTurn(1, aRun({ report })).reason).toMatch(/failed/)
  })
})

/** What each status leads to while the contract is red and everything is left to be tried. */
const leads = {
  success: { step: 'Code', consecutive_failures: 1 },
  failed: { step: 'Code', consecutive_failures: 1 },
  unknown: { step: 'Code', consecutive_failures: 1 },
  rate_limited: { step: 'RateLimit', infra_failures: 1, consecutive_failures: 0 },
  auth_required: { state: 'failed', failure_kind: 'auth_required', consecutive_failures: 0 },
  resource_killed: { step: 'Code', retries_used: 1, consecutive_failures: 0 },
  timed_out: { step: 'Code', retries_used: 1, consecutive_failures: 0 },
  agent_unavailable: { step: 'Code', infra_failures: 1, consecutive_failures: 0 },
  over_budget: { state: 'failed', failure_kind: 'budget_exhausted', consecutive_failures: 0 },
} as const satisfies Record<(typeof turnSchema.shape.status.options)[number], object>

const runs = {
  success: aRun(),
  failed: aRun({ status: 'failed', exit_code: 1 }),
  unknown: aRun({ status: 'failed', ...gone }),
  rate_limited: aRun({ report: aReport('rate_limited', reset) }),
  auth_required: aRun({ report: aReport('auth_required') }),
  resource_killed: aRun({ status: 'killed', ...gone }),
  timed_out: aRun({ status: 'timed_out', ...gone }),
  agent_unavailable: aRun({ status: 'unavailable', exit_code: 127 }),
  over_budget: aRun({ status: 'over_budget', ...gone }),
} satisfies Record<keyof typeof leads, Code>

describe('a turn that was judged', () => {
  it.each(turnSchema.shape.status.options)(
    '%s is looked at, and with red checks leads where it has to',
    (status) => {
      const road = setOut()
      road.to('Code')
      road.work(runs[status])
      expect(road.document).toMatchObject({ step: 'Validate', last_turn: { status } })
      road.work(validation(failed))
      expect(road.enter().document).toMatchObject(leads[status])
    },
  )

  it.each(turnSchema.shape.status.options)('%s is green where every check is, whatever it said', (status) => {
    const road = setOut()
    road.iterate(runs[status], passed)
    expect(road.document).toMatchObject({ step: 'Verify', last_turn: null })
    expect(road.told('verdict_reached')).toMatchObject([{ green: true, decided_by_layer: 0 }])
  })

  it('is no verdict on the work when the engine was not there, was killed or met a limit', () => {
    const interrupted = turnSchema.shape.status.options.filter((status) =>
      isInterrupted({ ...judgeTurn(1, aRun()), status }),
    )
    expect(new Set(interrupted)).toEqual(
      new Set([
        ...['rate_limited', 'auth_required', 'resource_killed', 'agent_unavailable'],
        ...['timed_out', 'over_budget'],
      ]),
    )
  })

  it('is recorded with the layer that decided it', () => {
    const road = setOut()
    road.iterate(runs.auth_required, failed)
    expect(road.told('engine_finished')).toMatchObject([
      { turn: { status: 'auth_required', decided_by_layer: 1 } },
    ])
    expect(road.told('verdict_reached')).toMatchObject([
      { green: false, decided_by_layer: 1, counted: false, failed: ['unit'] },
    ])
  })

  it('is told as a missing sign-in, that nobody waits for, where the engine said so', () => {
    const road = setOut()
    road.iterate(runs.auth_required, failed)
    expect(road.document.failure_kind).toBe('auth_required')
    expect(road.told('auth_required')).toEqual([{ message: road.document.error, wait_secs: null }])
  })
})
