import type { CheckResult } from '../schema.ts'

const isSame = (one: CheckResult, other: CheckResult): boolean =>
  one.output_digest !== undefined &&
  one.output_digest === other.output_digest &&
  one.exit_code === other.exit_code &&
  one.verdict === other.verdict

/**
 * Names of the checks that fail with the same output as on the untouched tree, and did so at every evaluation up to now.
 * `before` is the answer after the evaluation before; null at the first one.
 */
export const sameOutput = (
  baseline: readonly CheckResult[],
  results: readonly CheckResult[],
  before: readonly string[] | null,
): string[] =>
  results
    .filter((result) => baseline.some((first) => first.name === result.name && isSame(first, result)))
    .map(({ name }) => name)
    .filter((name) => before === null || before.includes(name))
