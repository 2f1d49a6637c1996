import type { CheckResult } from './schema.ts'

/** What an evaluation as a whole says. */
export type Summary = {
  /** Every gating check passed, and there is one. */
  green: boolean
  /** Every gating check gave a verdict on the work; otherwise a red one is not the work's fault alone. */
  measured: boolean
  /** A gating check got no verdict because the session's time ran out. */
  starved: boolean
  /** Names of the failed and the flaky ones. */
  failed: string[]
  /** Names of those that could not run. */
  notRun: string[]
}

const listed = (names: readonly string[]): string => names.join(', ')

/** What an evaluation came to in a line, each kind of verdict by itself. */
export const toldApart = (results: readonly CheckResult[]): string => {
  const of = (verdict: CheckResult['verdict']) =>
    results.filter((result) => result.verdict === verdict).map(({ name }) => name)
  const kinds = [
    ['could not run', of('could_not_run')],
    ['flaky', of('flaky')],
    ['red', of('failed')],
    ['passed', of('passed')],
  ] as const
  return kinds.flatMap(([kind, names]) => (names.length > 0 ? [`${kind}: ${listed(names)}`] : [])).join('; ')
}

/** The lines for which red checks may be red by what surrounds them, for a person to judge. */
export const suspicions = (results: readonly CheckResult[]): string[] =>
  results.flatMap(({ name, suspicion }) =>
    suspicion === undefined ? [] : [`the environment of ${name} is suspect: “${suspicion}”`],
  )

/** Whether every verdict is one on the tree, so that what follows can be held against it. */
export const isReliable = (results: readonly CheckResult[]): boolean =>
  results.every(({ verdict }) => verdict !== 'could_not_run' && verdict !== 'flaky')

/** Folds the results of one evaluation; captures are no part of it. */
export const summarise = (results: readonly CheckResult[]): Summary => {
  const gating = results.filter((result) => result.verdict !== 'captured')
  const notRun = gating.filter((result) => result.verdict === 'could_not_run')
  const failed = gating.filter((result) => result.verdict === 'failed' || result.verdict === 'flaky')
  return {
    green: gating.length > 0 && gating.every((result) => result.verdict === 'passed'),
    measured: gating.length > 0 && notRun.length === 0,
    starved: notRun.some((result) => result.deadline_clamped),
    failed: failed.map((result) => result.name),
    notRun: notRun.map((result) => result.name),
  }
}

/**
 * Whether a baseline shows that the contract gates nothing: all that has a verdict on the untouched tree
 * passed there already (spec/coder-session.md 5.3). Captures and differential checks have none and count
 * neither way; a contract that holds nothing else is not called empty.
 */
export const gatesNothing = (baseline: readonly CheckResult[]): boolean => {
  const judged = baseline.filter((result) => result.verdict !== 'captured')
  return judged.length > 0 && judged.every((result) => result.verdict === 'passed')
}
