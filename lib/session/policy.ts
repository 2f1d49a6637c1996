import type { CheckResult } from '../contract/schema.ts'
import { suspicions } from '../contract/summary.ts'
import { limits } from '../limits.ts'
import type { Document, Turn } from './document.ts'
import { isInterrupted } from './judge.ts'
import { isNominated } from './no-change.ts'
import type { FailureKind } from './states.ts'

/** What follows an evaluation (DESIGN 2, Decide), with the layer that decided it and whether it is a counted failure. */
export type Ruling = { layer: Turn['decided_by_layer']; counted: boolean; reason: string } & (
  | { kind: 'accept' }
  | { kind: 'repair' }
  | { kind: 'retry'; retries_used: number; retries_remaining: number; infra_failures: number }
  | { kind: 'wait'; reset_at: string; infra_failures: number }
  | { kind: 'ask' }
  /** `infra_failures` where the last of too many faults was the engine's. */
  | { kind: 'fail'; failure_kind: FailureKind; infra_failures?: number }
)

const names = (results: readonly CheckResult[]) => results.map((result) => result.name).join(', ')

/** Engine runs that a round may use: the first pass and its repairs (spec/coder-session.md 4.5). */
export const hypotheses = (document: Document): number =>
  1 + (document.repair_invokes ?? limits.repairInvokes.default)

const isOver = (deadline: string | null, now: number) => deadline !== null && now >= Date.parse(deadline)

/** Whether the money is used up, as far as it is known: unknown cost is not zero, and no proof either. */
const isSpent = ({ budget_usd: budget, usage }: Document) =>
  budget !== null && usage.cost_usd !== null && usage.cost_usd >= budget

/** Which limit of the run, time or money, is used up, in words; null when none is. */
const usedUp = (document: Document, now: number): string | null => {
  if (isOver(document.deadline_at, now)) return 'the time of the run is used up'
  return isSpent(document) ? `the budget of ${document.budget_usd} USD is used up` : null
}

/** Which limit keeps the work from being tried once more, in words; null when none does. Pure. */
export const mayIterate = (document: Document, now: number): string | null => {
  const used = usedUp(document, now)
  if (used !== null) return used
  if (document.iterations >= document.max_iterations)
    return `all ${document.max_iterations} iterations are used`
  return null
}

/** The gating checks that are not green, but for those that a person let through. */
export const redResults = (
  results: readonly CheckResult[],
  accepted: readonly string[] = [],
): CheckResult[] =>
  results.filter(
    ({ verdict, name }) => verdict !== 'captured' && verdict !== 'passed' && !accepted.includes(name),
  )

const isGreen = ({ last_check_results: results, accepted_red }: Document): boolean =>
  results.some(({ verdict }) => verdict !== 'captured') && redResults(results, accepted_red).length === 0

/** Whether a check could not run now, nor on the untouched tree. */
const neverRan = ({ baseline }: Document, { name, verdict }: CheckResult): boolean =>
  verdict === 'could_not_run' &&
  baseline.some((before) => before.name === name && before.verdict === 'could_not_run')

const isJudged = ({ verdict }: CheckResult) => verdict === 'failed' || verdict === 'flaky'

const failed = (
  failure_kind: FailureKind,
  reason: string,
  layer: Turn['decided_by_layer'],
  counted = false,
): Extract<Ruling, { kind: 'fail' }> => ({
  kind: 'fail',
  failure_kind,
  ...{ reason, layer, counted },
})

/** Once more with the same iteration: for an engine that died, as often as asked; for one that was not there, as infrastructure. */
const retried = (document: Document, turn: Turn): Ruling | null => {
  const most = document.transient_retries ?? limits.transientRetries.default
  const base = { layer: turn.decided_by_layer, counted: false, reason: turn.reason }
  const died = turn.status === 'resource_killed' || turn.status === 'timed_out'
  if (died && document.retries_used >= most) return null
  const infra_failures = document.infra_failures + (turn.status === 'timed_out' ? 0 : 1)
  if (infra_failures >= limits.infraFailures) {
    const told = `${infra_failures} faults, the last: ${turn.reason}`
    return { ...failed('infrastructure', told, turn.decided_by_layer), infra_failures }
  }
  if (died) {
    const retries_used = document.retries_used + 1
    return { kind: 'retry', ...base, retries_used, retries_remaining: most - retries_used, infra_failures }
  }
  const { retries_used } = document
  return {
    kind: 'retry',
    ...base,
    retries_used,
    retries_remaining: limits.infraFailures - 1 - infra_failures,
    infra_failures,
  }
}

/** When to try again where nobody told: after a minute, and twice as long each time. */
const guessed = (infra_failures: number, now: number): string =>
  new Date(now + limits.rateLimitGuessMs * 2 ** (infra_failures - 1)).toISOString()

/** A limit is waited for until it lifts, unless that is further away than anybody would wait. */
const limited = (document: Document, turn: Turn, now: number): Ruling | null => {
  const { decided_by_layer: layer, reason } = turn
  const infra_failures = document.infra_failures + 1
  const reset_at = turn.reset_at ?? guessed(infra_failures, now)
  if (infra_failures >= limits.infraFailures) return retried(document, turn)
  if (Date.parse(reset_at) > now + limits.rateLimitWaitMs) {
    const days = limits.rateLimitWaitMs / 86_400_000
    return failed(
      'infrastructure',
      `${reason}: it lifts at ${reset_at}, and ${days} days are waited at most`,
      layer,
    )
  }
  return { kind: 'wait', reset_at, infra_failures, layer, reason, counted: false }
}

/** What an interrupted turn leads to; null where it is to be judged by its work like any other. */
const ofTurn = (document: Document, turn: Turn, now: number): Ruling | null => {
  switch (turn.status) {
    case 'auth_required':
      return failed('auth_required', turn.reason, turn.decided_by_layer)
    case 'over_budget':
      return failed('budget_exhausted', turn.reason, turn.decided_by_layer)
    case 'rate_limited':
    case 'resource_killed':
    case 'timed_out':
    case 'agent_unavailable': {
      const used = usedUp(document, now)
      if (used !== null) return failed('budget_exhausted', `${used}: ${turn.reason}`, turn.decided_by_layer)
      return turn.status === 'rate_limited' ? limited(document, turn, now) : retried(document, turn)
    }
    case 'success':
    case 'failed':
    case 'unknown':
      return null
  }
}

/** What a person who reads of red checks should know besides: how the engine's turn went wrong, and what is left. */
const besides = ({ last_turn: turn, nomination, iterations, max_iterations }: Document): string[] => [
  ...(turn && isInterrupted(turn) ? [turn.reason] : []),
  ...(nomination
    ? ['the conclusion that nothing should change is set aside, for files were written to']
    : []),
  ...(iterations > 1
    ? [`${Math.max(0, max_iterations - iterations)} of ${max_iterations} iterations left`]
    : []),
]

/** Which red checks no work has changed anything about, in words. */
const sameAsBefore = ({ same_output }: Document, red: readonly CheckResult[]): string[] => {
  const same = red.filter(({ name }) => same_output.includes(name))
  return same.length === 0 ? [] : [`the output of ${names(same)} is the same as before any work`]
}

/** What red checks lead to, by the counters of spec/workflow-state.md C.3 and the limits of the run. */
const ofRed = (document: Document, red: readonly CheckResult[], now: number): Ruling => {
  const counted = red.some(isJudged)
  const more = counted ? 1 : 0
  const told = [
    `iteration ${document.iterations} red: ${names(red)}`,
    ...sameAsBefore(document, red),
    ...besides(document),
    ...suspicions(red),
  ].join('; ')
  const base = { layer: 0 as const, counted, reason: told }
  // An engine can't make run what could not before it; that is for a person to put right.
  const stuck = red.length > 0 && red.every((result) => neverRan(document, result))
  if (stuck && usedUp(document, now) === null) {
    const reason = `could not run, and could not on the untouched tree either: ${names(red)}`
    return { kind: 'ask', ...base, reason }
  }
  const exhausted = mayIterate(document, now)
  if (exhausted !== null) {
    if (usedUp(document, now) !== null)
      return failed('budget_exhausted', `${exhausted}; red: ${names(red)}`, 0, counted)
    return counted
      ? failed('error', `contract not met after ${document.iterations} iterations: ${names(red)}`, 0, counted)
      : failed('infrastructure', `checks could not run: ${names(red)}`, 0)
  }
  const ceiling =
    document.consecutive_failures + more >= limits.consecutiveFailures ||
    document.total_failures + more >= limits.totalFailures
  if (counted && ceiling) return { kind: 'ask', ...base }
  if (document.iterations - document.round_started_at < hypotheses(document))
    return { kind: 'repair', ...base }
  return counted
    ? failed('error', `contract not met after ${document.iterations} iterations: ${names(red)}`, 0, counted)
    : { kind: 'ask', ...base, reason: `checks could not run: ${names(red)}` }
}

/**
 * Rules on the last evaluation. Green only by observed passes; a red contract is an `error` only where a check judged
 * the work: checks that could not run are nobody's failure, and one that the session's clock starved is the budget.
 */
export const rule = (document: Document, now: number): Ruling => {
  if (isGreen(document))
    return { kind: 'accept', layer: 0, counted: false, reason: `iteration ${document.iterations} green` }
  if (isNominated(document))
    return { kind: 'accept', layer: 1, counted: false, reason: 'the engine holds that nothing should change' }
  const red = redResults(document.last_check_results, document.accepted_red)
  const turn = document.last_turn
  if (red.some((result) => result.deadline_clamped || result.reason === 'deadline')) {
    const when = turn?.status === 'timed_out' ? 'with the engine still running' : 'while checking'
    return failed('budget_exhausted', `the run’s time ended ${when}; not measured: ${names(red)}`, 0)
  }
  return (turn && ofTurn(document, turn, now)) ?? ofRed(document, red, now)
}
