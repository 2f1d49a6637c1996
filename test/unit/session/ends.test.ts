import { describe, expect, it } from 'vitest'
import { requestChanges } from '../../../lib/session/review-decisions.ts'
import { isTerminal } from '../../../lib/session/states.ts'
import { ada } from '../../support/sessions.ts'
import {
  aConclusion,
  aNomination,
  anIdleRun,
  aReport,
  aRun,
  failed,
  type Of,
  passed,
  unrun,
  validation,
  verification,
} from './results.ts'
import { setOut } from './road.ts'

const gone = { exit_code: null, signal: 'SIGKILL' }

/** Engines that never do anything else. */
const engines: Record<string, Of<'Code'>> = {
  'works in vain': aRun(),
  'does nothing': anIdleRun(),
  'holds that nothing should change': anIdleRun({ nomination: aNomination() }),
  'is always killed': aRun({ status: 'killed', ...gone }),
  'takes all its time': aRun({ status: 'timed_out', ...gone }),
  'is not there': aRun({ status: 'unavailable', exit_code: 127 }),
  'meets a rate limit each time': aRun({ report: aReport('rate_limited', '2030-01-01T00:00:01.000Z') }),
  'meets a rate limit without an end': aRun({ report: aReport('rate_limited') }),
}

/** What a session may need at the very most: each iteration a few steps, each fault a few more. */
const most = 12 * 8 + 100

describe('a session whose engine', () => {
  it.each(
    Object.entries(engines).flatMap(([name, run]) =>
      [failed, unrun, passed].map((result) => [name, result.verdict, run, result] as const),
    ),
  )('%s, with checks that %s, ends though people always want more', (_name, _verdict, run, result) => {
    const road = setOut({ mode: 'supervise', repair_invokes: 20 })
    road.to('Code')
    let moves = 0
    for (; moves < most && !isTerminal(road.document.state); moves++) {
      const { step, gate, review_identity: review } = road.document
      if (step === 'Code') road.work(run)
      else if (step === 'Validate') road.work(validation(result))
      else if (step === 'Verify')
        road.work(run.changed ? verification([result]) : aConclusion('premise_wrong', [result]))
      else if (step === 'ValidateGate' && gate)
        road.gate(road.document.iterations < 8 ? 'loop_back' : 'abort')
      else if (step === 'Review' && review && road.document.iterations < 8)
        road.write(requestChanges(road.item, { ...review, text: 'more' }, ada, road.now))
      else road.onward()
    }
    expect(isTerminal(road.document.state), `still at ${road.document.step} after ${moves} moves`).toBe(true)
    expect(road.document.iterations).toBeLessThanOrEqual(8)
  })
})
