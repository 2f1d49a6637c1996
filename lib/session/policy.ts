import type { CheckResult } from '../contract/schema.ts'
import { limits } from '../limits.ts'
import type { Document } from './document.ts'
import type { FailureKind } from './states.ts'

/** What follows an evaluation (DESIGN 2, Decide). */
export type Ruling =
  | { kind: 'accept' }
  | { kind: 'repair'; note: string }
  | { kind: 'fail'; failure_kind: FailureKind; error: string }

const names = (results: readonly CheckResult[]) => results.map((result) => result.name).join(', ')

/** Engine runs that a round may use: the first pass and its repairs (spec/coder-session.md 4.5). */
export const hypotheses = (document: Document): number =>
  1 + (document.repair_invokes ?? limits.repairInvokes.default)

/** Whether the work may be tried once more, and if not, why. Pure. */
export const mayIterate = (document: Document, now: number): string | null => {
  if (document.deadline_at && now >= Date.parse(document.deadline_at)) return 'the time of the run is used up'
  if (document.iterations >= document.max_iterations)
    return `all ${document.max_iterations} iterations are used`
  return null
}

/**
 * Rules on the last evaluation. Green only by observed passes; a red contract is an `error` only where a check judged
 * the work: checks that could not run are infrastructure, and one that the session's clock starved is the budget.
 */
export const rule = (document: Document, now: number): Ruling => {
  const gating = document.last_check_results.filter((result) => result.verdict !== 'captured')
  const red = gating.filter((result) => result.verdict !== 'passed')
  if (gating.length > 0 && red.length === 0) return { kind: 'accept' }
  if (red.some((result) => result.deadline_clamped || result.reason === 'deadline')) {
    return {
      kind: 'fail',
      failure_kind: 'budget_exhausted',
      error: `the run’s time ended while checking: ${names(red)}`,
    }
  }
  const exhausted = mayIterate(document, now)
  const used = document.iterations - document.round_started_at
  if (!exhausted && used < hypotheses(document)) {
    return { kind: 'repair', note: `iteration ${document.iterations} red: ${names(red)}` }
  }
  if (exhausted && document.deadline_at && now >= Date.parse(document.deadline_at)) {
    return { kind: 'fail', failure_kind: 'budget_exhausted', error: `${exhausted}; red: ${names(red)}` }
  }
  const judged = red.some((result) => result.verdict === 'failed' || result.verdict === 'flaky')
  return judged
    ? {
        kind: 'fail',
        failure_kind: 'error',
        error: `contract not met after ${document.iterations} iterations: ${names(red)}`,
      }
    : { kind: 'fail', failure_kind: 'infrastructure', error: `checks could not run: ${names(red)}` }
}
