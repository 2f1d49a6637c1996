import { describe, expect, it } from 'vitest'
import { limits } from '../../../lib/limits.ts'
import { requestChanges } from '../../../lib/session/review-decisions.ts'
import { ada } from '../../support/sessions.ts'
import { aRun, failed, passed, unrun, validation, verification } from './results.ts'
import { setOut, setOutTo } from './road.ts'

const red = (road: ReturnType<typeof setOut>) => road.iterate(aRun(), failed)
const changes = (road: ReturnType<typeof setOut>) => {
  road.to('Review')
  const review_id = road.document.review_identity?.review_id ?? ''
  road.write(requestChanges(road.item, { review_id, text: 'more' }, ada, road.now))
}

describe('consecutive_failures', () => {
  it.each(['supervise', 'auto'] as const)('asks a person at the third red in a row, in mode %s', (mode) => {
    const road = setOut({ mode })
    expect(red(road).document).toMatchObject({ step: 'Code', consecutive_failures: 1 })
    expect(red(road).document).toMatchObject({ step: 'Code', consecutive_failures: 2 })
    expect(red(road).document).toMatchObject({
      ...{ step: 'ValidateGate', stage: 'validate', state: 'running', consecutive_failures: 3 },
      gate: { kind: 'validate', cause: 'red', unexpected: false },
    })
  })

  it('is not reset by a loop back: the next red asks again', () => {
    const road = setOut()
    for (let n = 0; n < limits.consecutiveFailures; n++) red(road)
    expect(road.gate('loop_back').document).toMatchObject({
      step: 'Code',
      consecutive_failures: 3,
      gate: null,
    })
    expect(red(road).document).toMatchObject({ step: 'ValidateGate', consecutive_failures: 4 })
  })

  it('lets red through to review by a person’s advance, and starts anew in the next stage', () => {
    const road = setOut()
    for (let n = 0; n < limits.consecutiveFailures; n++) red(road)
    expect(road.gate('advance').document).toMatchObject({
      ...{ step: 'Verify', accepted_red: ['unit'], consecutive_failures: 3 },
    })
    road.work(verification([failed]))
    expect(road.document).toMatchObject({ step: 'Review', state: 'needs_approval', consecutive_failures: 0 })
    expect(road.document.gate?.context).toContain('red: unit')
  })

  it('keeps what was let through for the work that was seen: the next iteration has to be green again', () => {
    const road = setOut()
    for (let n = 0; n < limits.consecutiveFailures; n++) red(road)
    road.gate('advance')
    road.work(verification([failed]))
    changes(road)
    road.enter()
    expect(road.document.accepted_red).toEqual([])
    road.work(aRun())
    road.work(validation(failed))
    expect(road.enter().document).toMatchObject({ step: 'Code', consecutive_failures: 1 })
  })

  it('does not count checks that could not run', () => {
    const road = setOut()
    for (let n = 0; n < 2; n++) road.iterate(aRun(), unrun)
    expect(road.document).toMatchObject({ step: 'Code', consecutive_failures: 0, total_failures: 0 })
    expect(road.iterate(aRun(), unrun).document).toMatchObject({
      ...{ step: 'ValidateGate', consecutive_failures: 0, total_failures: 0 },
      gate: { context: expect.stringContaining('could not run') },
    })
  })
})

describe('total_failures', () => {
  it('is reset by nothing, and from its ceiling on asks at every red, whatever the streak', () => {
    const road = setOut({ max_iterations: 100 })
    for (let round = 1; round <= 5; round++) {
      red(road)
      expect(road.document).toMatchObject({ step: 'Code', consecutive_failures: 1 })
      expect(road.document.total_failures).toBe(2 * round - 1)
      red(road)
      if (round === 5) break
      changes(road)
      expect(road.document).toMatchObject({ total_failures: 2 * round, consecutive_failures: 0 })
    }
    expect(road.document).toMatchObject({ step: 'ValidateGate', total_failures: 10, consecutive_failures: 2 })
    road.gate('loop_back')
    expect(red(road).document).toMatchObject({ step: 'ValidateGate', total_failures: 11, state: 'running' })
  })
})

describe('max_iterations', () => {
  it('ends a session whose contract is red at the last of them as an error, by default the eighth', () => {
    const road = setOut()
    for (let n = 1; n < limits.iterations.default; n++) {
      red(road)
      if (road.document.gate) road.gate('loop_back')
    }
    expect(road.document).toMatchObject({ step: 'Code', iterations: 7 })
    expect(red(road).document).toMatchObject({ state: 'failed', failure_kind: 'error', iterations: 8 })
  })

  it('is no failure of the work where its checks could not run', () => {
    const road = setOut({ max_iterations: 1 })
    expect(road.iterate(aRun(), unrun).document).toMatchObject({ failure_kind: 'infrastructure' })
  })

  it('takes green at the last of them', () => {
    const road = setOut({ max_iterations: 1 })
    expect(road.iterate(aRun(), passed).document.step).toBe('Verify')
  })
})

describe('repair_invokes', () => {
  it('is how often a red contract is repaired before it is an error', () => {
    const road = setOut({ repair_invokes: 1 })
    expect(red(road).document).toMatchObject({ step: 'Code' })
    expect(red(road).document).toMatchObject({ state: 'failed', failure_kind: 'error', iterations: 2 })
  })

  it('is counted anew when a person sets the work going again', () => {
    const road = setOut({ repair_invokes: 1 })
    red(road)
    changes(road)
    expect(red(road).document).toMatchObject({ step: 'Code', iterations: 3 })
    expect(red(road).document).toMatchObject({ state: 'failed', iterations: 4 })
  })
})

describe('transient_retries', () => {
  const killed = aRun({ status: 'killed', exit_code: null, signal: 'SIGKILL' })

  it('runs a dead engine once more with the same iteration, then judges it by its work', () => {
    const road = setOut()
    expect(road.iterate(killed, failed).document).toMatchObject({
      ...{ step: 'Code', iterations: 1, retries_used: 1, consecutive_failures: 0, infra_failures: 1 },
    })
    expect(road.iterate(killed, failed).document).toMatchObject({
      ...{ step: 'Code', iterations: 1, iteration_open: false, consecutive_failures: 1 },
    })
    expect(road.told('invocation_retried')).toMatchObject([{ hypothesis: 1, retries_remaining: 0 }])
  })

  it('are those of a whole round: hypotheses and retries add up and do not multiply', () => {
    const road = setOut({ transient_retries: 2, repair_invokes: 1 })
    let runs = 0
    while (road.document.state !== 'failed' && runs < 20) {
      road.iterate(killed, failed)
      runs += 1
    }
    expect(runs).toBe(1 + 1 + 2)
  })

  it('can be none', () => {
    const road = setOut({ transient_retries: 0 })
    expect(road.iterate(killed, failed).document).toMatchObject({ retries_used: 0, consecutive_failures: 1 })
  })

  it('are not needed where the contract is green all the same', () => {
    expect(setOut().iterate(killed, passed).document).toMatchObject({ step: 'Verify', retries_used: 0 })
  })
})

it('a verification that is red is a failure like any other', () => {
  const road = setOutTo('Verify')
  road.work(verification([failed]))
  expect(road.enter().document).toMatchObject({ step: 'Code', consecutive_failures: 1, total_failures: 1 })
})
