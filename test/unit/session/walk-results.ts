import type { CheckResult } from '../../../lib/contract/schema.ts'
import type { SessionItem } from '../../../lib/session/item.ts'
import type { Result } from '../../../lib/session/protocol.ts'
import { aContract, aResult } from '../../support/sessions.ts'
import * as results from './results.ts'

/** Where a session is, when, and which of the variants of what may happen to it is picked. */
export type Here = { item: SessionItem; now: number; dice: number }

/** One of several, by the dice. */
export const pick = <Value>(from: readonly [Value, ...Value[]], dice: number): Value =>
  from[dice % from.length] ?? from[0]

const checked = (dice: number): [CheckResult, ...CheckResult[]] => [
  aResult({ verdict: pick(['passed', 'passed', 'failed', 'could_not_run', 'flaky'], dice) }),
  ...(dice % 3 === 0 ? [aResult({ name: 'shape', verdict: 'captured' })] : []),
]

const problems = (dice: number) =>
  results.aPreflight(
    ...pick<results.Of<'Preflight'>['problems'][number]['failure_kind'][]>(
      [[], [], [], ['configuration'], ['infrastructure', 'auth_required']],
      dice,
    ),
  )

const gone = { exit_code: null, signal: 'SIGKILL' }
const cost = (cost_usd: number) => ({ input_tokens: 1, output_tokens: 1, cost_usd, complete: true })

/** How an engine's run may end: well at 0 to 3, with nothing written at 13 to 15, interrupted in each way between. */
const runs = ({ now, item, dice }: Here): results.Of<'Code'> => {
  const reset = new Date(now + (dice % 5) * 1000).toISOString()
  const all: [results.Of<'Code'>, ...results.Of<'Code'>[]] = [
    results.aRun(),
    results.aRun({ guidance_applied: item.document.steering_messages.length }),
    results.aRun({ usage: cost(0.3), guidance_applied: dice % 4 }),
    results.aRun({ report: results.aReport('success') }),
    results.aRun({ status: 'failed', exit_code: 1 }),
    results.aRun({ status: 'killed', ...gone }),
    results.aRun({ status: 'timed_out', ...gone, usage: cost(0.5) }),
    results.aRun({ status: 'unavailable', exit_code: 127 }),
    results.aRun({ status: 'over_budget', ...gone }),
    results.aRun({ status: 'cancelled', ...gone }),
    results.aRun({ report: results.aReport('rate_limited', reset) }),
    results.aRun({ report: results.aReport('rate_limited') }),
    results.aRun({ report: results.aReport('auth_required') }),
    results.anIdleRun({ touched: true, nomination: results.aNomination() }),
    results.anIdleRun({ nomination: results.aNomination(pick(['premise_wrong', 'not_reproducible'], dice)) }),
    results.anIdleRun(),
  ]
  return pick(all, dice)
}

const verifications = (dice: number): results.Of<'Verify'> => {
  const kinds = ['already_satisfied', 'not_reproducible'] as const
  const made =
    pick([0, 1], dice >> 2) === 0
      ? results.verification(checked(dice))
      : results.aConclusion(pick(kinds, dice), checked(dice))
  if (dice % 5 === 0) return { ...made, review: null }
  return dice % 29 === 0 ? { ...made, review: made.review && { ...made.review, finding: null } } : made
}

/** What a worker may answer at the step at which the session is, now and then at another. */
export const resultOf = (here: Here): Result => {
  const { item, dice } = here
  if (dice % 17 === 0) return { outcome: 'failed', failure_kind: 'configuration', error: 'x \ud800 y' }
  if (dice % 11 === 0) return { outcome: 'fault', detail: 'lost the network' }
  const step =
    dice % 13 === 0 ? pick(['Preflight', 'Code', 'Verify', 'Deliver'] as const, dice) : item.document.step
  switch (step) {
    case 'Prepare':
      return results.aPreparation
    case 'Draft':
      return results.aDraft({
        contract: dice % 7 === 0 ? aContract({ checks: [] }) : (item.document.contract ?? aContract()),
        provenance: pick(['runtime_generated', 'model_derived'] as const, dice),
      })
    case 'Baseline':
      return results.aBaseline(...checked(dice))
    case 'Code':
      return runs(here)
    case 'Validate':
      return results.validation(...checked(dice))
    case 'Verify':
      return verifications(dice)
    case 'Deliver':
      return pick([results.aDelivery, results.aFailedDelivery], dice + 1)
    default:
      return problems(dice)
  }
}
