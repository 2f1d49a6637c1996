import { isTrusted } from '../contract/trust.ts'
import type { Document } from './document.ts'

/**
 * Who authorised shipping before the review was there, where that holds for it: a change that is green under a trusted
 * contract and of which nothing has to be disclosed, and no person has answered at a review of this session. Null where a
 * person has to decide.
 */
export const shipsByItself = (document: Document): string | null => {
  const { yes_ship: yes, contract_provenance: provenance, review_identity: review } = document
  const holds =
    yes !== null &&
    !yes.void &&
    review?.kind === 'change' &&
    provenance !== null &&
    isTrusted(provenance) &&
    document.accepted_red.length === 0 &&
    document.review_disclosed.length === 0 &&
    document.delivery_problem === null
  return holds ? yes.by : null
}

/**
 * Whether a finding needs nobody: mode auto, the runtime itself has verified it (spec/coder-session.md 7.5), and no person
 * has set the work going anew since its first run.
 */
export const reportsByItself = ({
  mode,
  no_change_finding: finding,
  review_identity: review,
  round_started_at,
}: Document): boolean =>
  mode === 'auto' &&
  round_started_at === 0 &&
  review?.kind === 'finding' &&
  finding?.verification === 'runtime_baseline_green'
