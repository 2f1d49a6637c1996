import { describe, expect, it } from 'vitest'
import { newId } from '../../../lib/ids.ts'
import { cancel } from '../../../lib/session/controls.ts'
import { needsYou } from '../../../lib/session/gates.ts'
import { stepSchema } from '../../../lib/session/states.ts'
import { retain, takeLease } from '../../../lib/session/worker.ts'
import { aCheckpoint, ada } from '../../support/sessions.ts'
import { aPreflight, aReport, aRun, failed, startTree } from './results.ts'
import { setOut, setOutTo } from './road.ts'

type Road = ReturnType<typeof setOut>
type Created = Parameters<typeof setOut>[0]

/** The ways to the steps that the usual road does not come by. */
const detours: Record<string, (created: Created) => Road> = {
  PreflightGate: (created) => {
    const road = setOutTo('Preflight', created)
    road.work(aPreflight('configuration'))
    return road
  },
  RateLimit: (created) => {
    const road = setOut(created)
    road.iterate(aRun({ report: aReport('rate_limited', '2030-01-02T00:00:00.000Z') }), failed)
    return road
  },
  ValidateGate: (created) => {
    const road = setOut(created)
    for (let n = 0; n < 3; n++) road.iterate(aRun(), failed)
    return road
  },
  Rest: (created) => setOutTo('Rest', { ...created, until: 'code' }),
}
const at = (step: (typeof steps)[number], created: Created = {}): Road =>
  detours[step]?.(created) ?? setOutTo(step, created)
const steps = stepSchema.options.filter((step) => step !== 'Settle')
const parked = steps.filter((step) => !['Plan', 'Decide', 'Rest'].includes(step))

describe('cancel', () => {
  it.each(steps)('at %s ends the session for good, with nothing left open', (step) => {
    const road = at(step)
    road.write(cancel(road.item, 'enough', ada))
    expect(road.document).toMatchObject({
      ...{ state: 'abandoned', step: 'Settle', error: 'enough', failure_kind: null, gate: null },
      ...{ rate_limit: null, stopped: false },
    })
    expect(needsYou(road.document)).toBeNull()
    expect(road.enter().document).toMatchObject({ state: 'abandoned', execution_stopped: true })
  })

  it.each(parked)('answers the machine where it is parked at %s', (step) => {
    const road = at(step)
    road.enter()
    const token = road.item.runtime.task?.token
    expect(token).toBeDefined()
    road.write(cancel(road.item, null, ada))
    expect(road.item.runtime).toMatchObject({ task: null, command: null })
    expect(road.item.runtime.answers.at(-1)).toMatchObject({ ok: true, token, output: { next: 'Settle' } })
  })

  it('a second time changes nothing', () => {
    const road = at('Code')
    road.write(cancel(road.item, 'enough', ada))
    expect(cancel(road.item, 'more', ada)).toBeNull()
  })

  it('lets no late result change anything', () => {
    const road = at('Code')
    road.enter()
    road.write(takeLease(road.item, road.item.runtime.compute?.id ?? '', 'claim', road.now))
    const lease = { worker_id: road.item.runtime.compute?.id ?? '', epoch: road.item.runtime.lease.epoch }
    road.write(cancel(road.item, 'enough', ada))
    expect(() => takeLease(road.item, lease.worker_id, 'claim', road.now)).toThrow(
      expect.objectContaining({ code: 'superseded' }),
    )
    expect(() => retain(road.item, lease, aCheckpoint())).toThrow(
      expect.objectContaining({ code: 'superseded' }),
    )
  })
})

describe('keep_workspace_on_cancel', () => {
  /** A session whose engine runs, with its worker's lease; it has an iteration behind it. */
  const running = (created: Created) => {
    const road = setOut(created)
    road.iterate(aRun(), failed)
    road.enter()
    const worker_id = road.item.runtime.compute?.id ?? ''
    road.write(takeLease(road.item, worker_id, 'claim', road.now))
    return { road, lease: { worker_id, epoch: road.item.runtime.lease.epoch } }
  }
  const kept = { ...aCheckpoint(), id: 'late', bundle: 'late' }

  it('keeps what was saved, and what the worker has in hand, until the session is settled', () => {
    const { road, lease } = running({ keep_workspace_on_cancel: true })
    road.write(cancel(road.item, 'enough', ada))
    expect(road.document).toMatchObject({ retained_work: true })
    road.write(retain(road.item, lease, kept))
    expect(road.document).toMatchObject({ retained_work: true, checkpoint: { id: 'late' } })
    road.enter()
    expect(() => retain(road.item, lease, kept)).toThrow(expect.objectContaining({ code: 'superseded' }))
  })

  it('keeps nothing where there is nothing beyond the start', () => {
    const { document } = at('Code', { keep_workspace_on_cancel: true })
    expect(document.checkpoint?.tree).toBe(startTree)
    const road = at('Code', { keep_workspace_on_cancel: true })
    road.write(cancel(road.item, null, ada))
    expect(road.document.retained_work).toBe(false)
  })

  it('keeps it also where a fault came first', () => {
    const { road, lease } = running({ keep_workspace_on_cancel: true })
    for (let n = 0; n < 4; n++) road.lose()
    road.gate('loop_back')
    expect(road.lose().document).toMatchObject({ failure_kind: 'infrastructure', retained_work: true })
    road.write(retain(road.item, lease, kept))
    expect(road.document.checkpoint).toEqual(kept)
  })

  it('is asked for: without it the work goes', () => {
    const { road, lease } = running({})
    road.write(cancel(road.item, 'enough', ada))
    expect(road.document.retained_work).toBe(false)
    expect(() => retain(road.item, lease, kept)).toThrow(expect.objectContaining({ code: 'superseded' }))
    expect(() => retain(road.item, { ...lease, worker_id: newId('wrk') }, kept)).toThrow()
  })
})

describe('keep_workspace_on_failure', () => {
  it.each([
    ['configuration', true],
    ['error', true],
    ['infrastructure', true],
    ['stalled', true],
    ['budget_exhausted', true],
    ['auth_required', true],
  ] as const)('keeps the work of a session that failed by %s', (failure_kind, kept) => {
    const road = setOut({ keep_workspace_on_failure: true })
    road.iterate(aRun(), failed)
    road.work({ outcome: 'failed', failure_kind, error: 'x' })
    expect(road.document).toMatchObject({ failure_kind, retained_work: kept })
  })

  it.each([
    ['configuration', false],
    ['error', false],
    ['infrastructure', true],
    ['stalled', true],
    ['budget_exhausted', true],
    ['auth_required', true],
  ] as const)(
    'is not needed for a limit that cut the work short: without it, %s keeps it: %s',
    (failure_kind, kept) => {
      const road = setOut()
      road.iterate(aRun(), failed)
      road.work({ outcome: 'failed', failure_kind, error: 'x' })
      expect(road.document).toMatchObject({ failure_kind, retained_work: kept })
    },
  )
})

describe('max_iterations', () => {
  it('is a limit like any other: the work that it cut short is kept, and it is told as one', () => {
    const road = setOut({ max_iterations: 1, repair_invokes: 0 })
    road.iterate(aRun(), failed)
    expect(road.document).toMatchObject({ failure_kind: 'error', retained_work: true })
    expect(road.told('budget_exhausted')).toMatchObject([{ iterations: 1 }])
  })
})

describe('a cancel while the work is delivered', () => {
  it('says what it may have come too late for', () => {
    const road = setOutTo('Deliver')
    road.write(cancel(road.item, 'stop', ada))
    expect(road.document).toMatchObject({
      ...{ state: 'abandoned', error: 'stop', result_branch: null },
      delivery_problem: expect.stringContaining(road.document.review_identity?.commit ?? 'none'),
    })
    expect(road.document.delivery_problem).toContain(`gatehouse/${road.document.id.slice(-8)}`)
  })
})
