import type { Captures } from '../contract/capture.ts'
import type { CheckResult, Contract } from '../contract/schema.ts'
import { summarise } from '../contract/summary.ts'
import { GatehouseError } from '../errors.ts'
import type { Fact } from '../journal/facts.ts'
import type { Document } from './document.ts'

/** The result without its output, as the session item keeps it; the output is in the artifact and the journal's events. */
export const withoutOutput = (result: CheckResult): CheckResult => ({
  ...result,
  output_head: '',
  output_tail: '',
})

export const capturesWithoutOutput = (captures: Captures): Captures =>
  Object.fromEntries(
    Object.entries(captures).map(([name, capture]) => [
      name,
      { ...capture, result: withoutOutput(capture.result) },
    ]),
  )

/** An evaluation speaks of every check of the contract, in order; one that leaves any out could be green by silence. */
export const requireEveryCheck = (contract: Contract | null, results: readonly CheckResult[]): void => {
  const missing = contract?.checks.find((check, index) => results[index]?.name !== check.name)
  if (!contract || missing) {
    throw new GatehouseError('invalid_request', `the results lack check ${missing?.name ?? ''}`)
  }
}

export const listed = (names: readonly string[]): string => (names.length === 0 ? 'none' : names.join(', '))

/** The record of an evaluation, its verdict, and a line that tells a person which checks failed. */
export const evaluated = (
  document: Document,
  on: 'worktree' | 'clean_checkout',
  result: { results: CheckResult[]; tree_edited: boolean },
  artifact: string,
): { fact: Fact; green: boolean; note: string } => {
  const { green, failed, notRun } = summarise(result.results)
  const { iterations } = document
  const red = `red: ${listed(failed)}${notRun.length > 0 ? `; not run: ${listed(notRun)}` : ''}`
  return {
    green,
    note: `iteration ${iterations}: ${green ? 'green' : red}`,
    fact: {
      type: 'contract_evaluated',
      data: {
        iteration: iterations,
        on,
        results: result.results.map(withoutOutput),
        green,
        artifact,
        tree_edited: result.tree_edited,
      },
    },
  }
}
