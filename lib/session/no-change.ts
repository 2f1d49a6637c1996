import { gatesNothing } from '../contract/summary.ts'
import { isTrusted } from '../contract/trust.ts'
import type { Document } from './document.ts'

type Finding = NonNullable<Document['no_change_finding']>

/** Kinds whose claim is that the contract was met before anything was done: all that a green baseline can show. */
const verifiable: ReadonlySet<Finding['kind']> = new Set(['premise_wrong', 'already_satisfied'])

/** Whether the files are as they were at the start; without a start to compare with they never are. */
const isUnchanged = ({ checkpoint, start_tree: start }: Document): boolean =>
  start !== null && checkpoint?.tree === start

/**
 * Whether nothing-should-change may be concluded at all (spec/coder-session.md 7.3, 7.4): the tree is that of
 * `start_commit`, and no engine wrote to it on the way. An edit that was taken back does not restore it.
 */
export const mayConclude = (document: Document): boolean => isUnchanged(document) && !document.mutated

/** Whether an engine's nomination stands, for a person to decide on. */
export const isNominated = (document: Document): boolean =>
  document.nomination !== null && mayConclude(document)

/** What the runtime itself can say for a finding: the baseline of a trusted contract was green (7.5); else nothing. */
export const verificationOf = (
  document: Document,
  kind: Finding['kind'],
  green: boolean,
): Finding['verification'] => {
  const { contract_provenance: provenance, baseline, contract } = document
  // A comparison with the baseline says nothing on the baseline itself.
  const measured = contract?.checks.every(({ differential }) => differential === null) ?? false
  const proven = green && measured && provenance !== null && isTrusted(provenance) && gatesNothing(baseline)
  return proven && verifiable.has(kind) ? 'runtime_baseline_green' : null
}
