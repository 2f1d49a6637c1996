import { describe, expect, it } from 'vitest'
import { limits } from '../../../lib/limits.ts'
import { cancel, resume } from '../../../lib/session/controls.ts'
import { dueAt } from '../../../lib/session/due.ts'
import { needsYou } from '../../../lib/session/gates.ts'
import { requestChanges } from '../../../lib/session/review-decisions.ts'
import type { Stage, Step } from '../../../lib/session/states.ts'
import { ada } from '../../support/sessions.ts'
import { aReport, aRun, failed, passed, validation } from './results.ts'
import { setOut, setOutTo } from './road.ts'

const stops: [Stage, Step, object][] = [
  ['define', 'Plan', { state: 'contract_confirmed', deadline_at: null }],
  ['plan', 'Code', { state: 'running', iterations: 0 }],
  ['code', 'Validate', { state: 'running', iterations: 1, last_check_results: [] }],
  ['validate', 'Review', { state: 'needs_approval', review_identity: { kind: 'change' } }],
]
const killed = aRun({ status: 'killed', exit_code: null, signal: 'SIGKILL' })

/** A session at rest after the stage that it was to run to. */
const stopped = (until: Stage) => {
  const road = setOutTo('Rest', { until, mode: 'auto' })
  road.enter()
  return road
}

describe('until', () => {
  it.each(stops)(
    '%s stops the session before %s, with nothing asked and nothing running',
    (until, next, more) => {
      const { document, item } = stopped(until)
      expect(document).toMatchObject({
        ...{ step: 'Rest', stage: until, stopped: true, resume_at: next, failure_kind: null, gate: null },
        ...more,
      })
      expect(document.stop_reason).toContain(until)
      expect(needsYou(document)).toBeNull()
      expect(item.runtime).toMatchObject({ resting: true, task: null, command: null })
    },
  )

  it('leaves a session at rest alone until somebody resumes it', () => {
    const { item } = stopped('code')
    const quiet = { ...item, outbox: [], runtime: { ...item.runtime, answers: [], start_pending: false } }
    expect(dueAt(quiet)).toBeNull()
  })

  it('does not hold what leads back, nor an end', () => {
    const road = setOut({ until: 'validate', mode: 'auto' })
    expect(road.iterate(aRun(), failed).document).toMatchObject({ step: 'Code', stopped: false })
    const ended = setOut({ until: 'code', mode: 'auto', max_iterations: 1 })
    ended.to('Code')
    ended.write(cancel(ended.item, null, ada))
    expect(ended.document).toMatchObject({ state: 'abandoned', step: 'Settle', stopped: false })
  })
})

describe('until code, with an engine that was interrupted', () => {
  it('lets the engine’s work be looked at and the engine be run again, and stops when it is through', () => {
    const road = setOut({ until: 'code', mode: 'auto' })
    expect(road.iterate(killed, failed).document).toMatchObject({ step: 'Code', stopped: false })
    road.work(aRun())
    expect(road.document).toMatchObject({ step: 'Rest', resume_at: 'Validate', stage: 'code' })
  })

  it('waits for a rate limit, as that is not through either', () => {
    const road = setOut({ until: 'code', mode: 'auto' })
    road.iterate(aRun({ report: aReport('rate_limited', '2030-01-01T00:01:00.000Z') }), failed)
    expect(road.document).toMatchObject({ step: 'RateLimit', stopped: false })
  })

  it('stops before Verify where the look finds the contract green', () => {
    const road = setOut({ until: 'code', mode: 'auto' })
    road.iterate(killed, passed)
    expect(road.document).toMatchObject({ step: 'Rest', resume_at: 'Verify', stage: 'code' })
    road.write(resume(road.item, null, ada, road.now))
    expect(road.document).toMatchObject({ step: 'Verify', stage: 'validate', stopped: false })
  })

  it('asks a person about a run that was lost too often, and they are heard', () => {
    const road = setOutTo('Code', { until: 'code', mode: 'auto' })
    for (let n = 0; n < 4; n++) road.lose()
    expect(road.document).toMatchObject({ step: 'ValidateGate', gate: { cause: 'interrupted' } })
    road.gate('loop_back')
    road.work(aRun())
    expect(road.document).toMatchObject({ step: 'Rest', resume_at: 'Validate' })
  })
})

describe('resume', () => {
  it.each(stops)('after %s goes on with %s and to the end', (until, next) => {
    const road = stopped(until)
    const { attempt } = road.item.runtime
    road.later(3_600_000)
    road.write(resume(road.item, null, ada, road.now))
    expect(road.document).toMatchObject({
      ...{ step: next, until: null, stopped: false, stop_reason: null, resume_at: null },
    })
    expect(road.item.runtime).toMatchObject({
      ...{ attempt: attempt + 1, start_pending: true, execution_arn: null, resting: false },
    })
    road.to('Settle')
    expect(road.document).toMatchObject({ state: 'merged', stopped: false })
  })

  it('can name a later stage to stop after, and is held there', () => {
    const road = stopped('define')
    road.write(resume(road.item, 'code', ada, road.now))
    expect(road.document).toMatchObject({ step: 'Plan', until: 'code' })
    road.to('Rest')
    expect(road.document).toMatchObject({ stage: 'code', resume_at: 'Validate' })
  })

  it.each([
    ['code', 'define'],
    ['code', 'code'],
    ['validate', 'plan'],
  ] as const)('after %s refuses to stop after %s, which is over', (until, over) => {
    const { item, now } = stopped(until)
    expect(() => resume(item, over, ada, now)).toThrow(expect.objectContaining({ code: 'invalid_request' }))
  })

  it('opens the review that was held back, and needs a person for it then', () => {
    const road = stopped('validate')
    road.write(resume(road.item, null, ada, road.now))
    expect(needsYou(road.document)).toMatchObject({ kind: 'approval' })
    expect(road.enter().document).toMatchObject({ step: 'Review', state: 'needs_approval' })
  })

  it('starts the run’s clock anew, where it had started', () => {
    const before = stopped('define')
    before.write(resume(before.item, null, ada, before.now))
    expect(before.document.deadline_at).toBeNull()
    const road = stopped('plan')
    road.later(limits.wallSecs.default * 1000)
    road.write(resume(road.item, null, ada, road.now))
    expect(Date.parse(road.document.deadline_at ?? '')).toBe(road.now + limits.wallSecs.default * 1000)
    road.work(aRun())
    expect(road.document.step).toBe('Validate')
  })

  it('is for a stopped session only', () => {
    const refused = (item: ReturnType<typeof setOut>['item'], code: string) =>
      expect(() => resume(item, null, ada, 0)).toThrow(expect.objectContaining({ code }))
    refused(setOut().item, 'illegal_transition')
    refused(setOutTo('Review').item, 'illegal_transition')
    refused(setOutTo('Settle').item, 'already_decided')
    const road = stopped('code')
    road.write(resume(road.item, null, ada, road.now))
    refused(road.item, 'illegal_transition')
    road.write(cancel(road.item, null, ada))
    refused(road.item, 'already_decided')
  })

  it('counts as the transition that was held back', () => {
    const road = setOut({ until: 'validate', mode: 'auto' })
    road.iterate(aRun(), failed)
    road.to('Rest')
    expect(road.document.consecutive_failures).toBe(1)
    road.write(resume(road.item, null, ada, road.now))
    expect(road.document).toMatchObject({ consecutive_failures: 0, total_failures: 1 })
  })
})

describe('cancel at rest', () => {
  it.each(stops)('after %s needs an execution once more, to settle', (until) => {
    const road = stopped(until)
    const { attempt } = road.item.runtime
    road.write(cancel(road.item, 'enough', ada))
    expect(road.document).toMatchObject({
      ...{
        state: 'abandoned',
        step: 'Settle',
        stage: until,
        stopped: false,
        resume_at: null,
        error: 'enough',
      },
    })
    expect(road.item.runtime).toMatchObject({ attempt: attempt + 1, start_pending: true, resting: false })
    expect(road.enter().document.execution_stopped).toBe(true)
  })
})

it('a person’s request for changes is not held by a stage that is over', () => {
  const road = stopped('validate')
  road.write(resume(road.item, null, ada, road.now))
  const review_id = road.document.review_identity?.review_id ?? ''
  road.write(requestChanges(road.item, { review_id, text: 'more' }, ada, road.now))
  road.work(aRun())
  road.work(validation(passed))
  expect(road.enter().document.step).toBe('Verify')
})
