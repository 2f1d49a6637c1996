import type { Fact } from '../../lib/journal/facts.ts'
import type { Document } from '../../lib/session/document.ts'
import { fail } from '../../lib/session/fail.ts'
import type { Change, SessionItem } from '../../lib/session/item.ts'
import { transition } from '../../lib/store/effects.ts'
import { objectKey } from '../../lib/store/keys.ts'
import type { Platform } from '../../lib/store/platform.ts'
import { actor } from './round.ts'

/** What shows that the reviewed tree is unchanged, or why nothing does. */
export type Proof = { review_id: string } & (
  | { proven: true; proof: string }
  | { proven: false; reason: string }
)

type Bundle = { name: string; sha256: string | null }
type Claim = { kind: 'start_tree' } | ({ kind: 'bundle' } & Bundle) | { reason: string }

/** What would have to be shown of a review's tree, as far as the document alone tells. Pure. */
export const claimOf = ({ review_identity: review, checkpoint, start_tree }: Document): Claim => {
  if (!review || !checkpoint) return { reason: 'no work is recorded for it' }
  if (checkpoint.tree !== review.tree) return { reason: 'the saved work is not what was reviewed' }
  if (review.tree === start_tree) return { kind: 'start_tree' }
  if (checkpoint.bundle === null) return { reason: 'the reviewed work was not saved' }
  return { kind: 'bundle', name: checkpoint.bundle, sha256: checkpoint.bundle_sha256 }
}

/**
 * Reads the saved work; one that was shown to be whole before needs only to be there still, and so does one that was
 * saved before hashes were recorded: the delivery makes the reviewed commit from it anew, and compares.
 */
const readBundle = async (
  platform: Platform,
  { team, id, document }: SessionItem,
  { name, sha256 }: Bundle,
): Promise<{ proven: true; proof: string } | { proven: false; reason: string }> => {
  const key = objectKey.bundle(team, id, name)
  const missing = { proven: false, reason: 'the saved work is gone' } as const
  const told = sha256 === null ? 'is there' : `is there and hashes to ${sha256}`
  const proof = { proven: true, proof: `bundle ${name} ${told}` } as const
  if (document.review_restored || sha256 === null) return (await platform.blobs.exists(key)) ? proof : missing
  const found = await platform.blobs.sha256(key)
  if (found === null) return missing
  return found === sha256 ? proof : { proven: false, reason: 'the saved work was changed since' }
}

export const standsAtReview = ({ document }: SessionItem): boolean =>
  document.state === 'needs_approval' && document.step === 'Review'

/** Whether what would be delivered is shown to be what was reviewed (spec/coder-session.md 9.3). */
export const proveReview = async (platform: Platform, item: SessionItem): Promise<Proof> => {
  const review_id = item.document.review_identity?.review_id ?? ''
  const claim = claimOf(item.document)
  if ('reason' in claim) return { review_id, proven: false, reason: claim.reason }
  if (claim.kind === 'start_tree')
    return { review_id, proven: true, proof: 'nothing was changed: the tree is that of the start commit' }
  return { review_id, ...(await readBundle(platform, item, claim)) }
}

/** Whether a proof is about the review that a session stands at now. */
const isAbout = ({ review_id }: Proof, item: SessionItem): boolean =>
  standsAtReview(item) && item.document.review_identity?.review_id === review_id

/** The record that a review was taken up again; none where that was recorded before. */
export const restoredBy = (proof: Proof, item: SessionItem): Fact[] => {
  const { review_restored, review_identity: review } = item.document
  if (!proof.proven || !review || review_restored || !isAbout(proof, item)) return []
  const { review_id, tree } = review
  return [{ type: 'review_restored', data: { review_id, tree, proof: proof.proof } }]
}

/** The end of a session whose review nobody may approve any more; null where it is about another review. */
const spoiled = (proof: Proof, item: SessionItem): Change | null => {
  if (proof.proven || !isAbout(proof, item)) return null
  const error = `the reviewed work can’t be shown to be unchanged: ${proof.reason}`
  return fail(item, 'system', actor, { failure_kind: 'infrastructure', error })
}

/**
 * Takes up a review again: it stays approvable only if its tree is shown to be unchanged, and the session fails
 * otherwise. The caller records the proof. No proof for a session that stands at no review.
 */
export const takeUpReview = async (
  platform: Platform,
  item: SessionItem,
): Promise<{ item: SessionItem; proof: Proof | null }> => {
  if (!standsAtReview(item)) return { item, proof: null }
  const proof = await proveReview(platform, item)
  if (proof.proven) return { item, proof }
  return { item: await transition(platform, item, (now) => spoiled(proof, now)), proof }
}
