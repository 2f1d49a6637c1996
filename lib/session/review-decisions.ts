import { GatehouseError } from '../errors.ts'
import type { Actor } from '../journal/entry.ts'
import type { Fact } from '../journal/facts.ts'
import { advance } from './advance.ts'
import { reportsByItself, shipsByItself } from './authorised.ts'
import { startClock } from './clock.ts'
import type { Gate } from './document.ts'
import { requireGate, resolveGate } from './gates.ts'
import { guidance } from './guidance.ts'
import type { Change, SessionItem } from './item.ts'
import type { By } from './lifecycle.ts'
import { mayIterate } from './policy.ts'

const requireReview = (item: SessionItem, reviewId: string): Gate => {
  const gate = requireGate(item, 'approval')
  const identity = item.document.review_identity
  if (identity?.review_id !== reviewId || identity.contract_hash !== item.document.contract_hash) {
    throw new GatehouseError('review_moved', `the review is now ${identity?.review_id ?? 'not there'}`)
  }
  return gate
}

type Approval = { review_id: string; comment: string | null }

const approvedAs = (item: SessionItem, request: Approval, actor: Actor, by: By, who: string): Change => {
  const gate = requireReview(item, request.review_id)
  const facts = resolveGate(gate, 'approve', { ...actor, id: who }, request.comment, by === 'system')
  if (item.document.review_identity?.kind === 'finding') {
    const verification = by === 'system' ? 'runtime_baseline_green' : 'human_approved'
    return advance(item, {
      trigger: 'finding_accepted',
      ...{ by, actor, note: `finding accepted by ${who}` },
      facts: [
        ...facts,
        { type: 'finding_resolved', data: { accepted: true, comment: request.comment, verification } },
      ],
    })
  }
  return advance(item, { trigger: 'approved', by, actor, note: `approved by ${who}`, facts })
}

/** Approves exactly the review named (DESIGN 3, invariant 7): a change goes to delivery, a finding ends as reported. */
export const approve = (item: SessionItem, request: Approval, actor: Actor): Change =>
  approvedAs(item, request, actor, 'approver', actor.id)

/** What the session's start or the runtime's own proof approves, right after the gate opened; null where a person has to. */
export const approveByItself = (item: SessionItem): Change | null => {
  const { document } = item
  const { review_identity: review, gate } = document
  if (gate?.kind !== 'approval' || !review) return null
  const by = shipsByItself(document)
  const who =
    by === null ? (reportsByItself(document) ? 'runtime_baseline_green' : null) : `yes_ship of ${by}`
  if (who === null) return null
  return approvedAs(
    item,
    { review_id: review.review_id, comment: null },
    { kind: 'system', id: 'Review' },
    'system',
    who,
  )
}

/** The fact that a finding was not accepted; none where the review is of a change. */
const declined = ({ document }: SessionItem, comment: string): Fact[] =>
  document.review_identity?.kind === 'finding'
    ? [{ type: 'finding_resolved', data: { accepted: false, comment, verification: null } }]
    : []

export const reject = (
  item: SessionItem,
  request: { review_id: string; reason: string },
  actor: Actor,
): Change => {
  const gate = requireReview(item, request.review_id)
  return advance(item, {
    trigger: 'rejected',
    by: 'approver',
    actor,
    note: `rejected by ${actor.id}`,
    facts: [
      ...resolveGate(gate, 'reject', actor, request.reason),
      ...declined(item, request.reason),
      { type: 'session_cancelled', data: { reason: request.reason, by: actor.id } },
    ],
  })
}

/** Sends the work back with guidance; the clock of the run starts anew, the total of iterations doesn't. */
export const requestChanges = (
  item: SessionItem,
  request: { review_id: string; text: string },
  actor: Actor,
  now: number,
): Change => {
  const gate = requireReview(item, request.review_id)
  const { document } = item
  const used = mayIterate({ ...document, deadline_at: null }, now)
  if (used) throw new GatehouseError('illegal_transition', `no changes can be asked for: ${used}`)
  return advance(item, {
    trigger: 'changes_requested',
    by: 'approver',
    actor,
    note: `changes requested by ${actor.id}`,
    facts: [
      ...resolveGate(gate, 'changes', actor, request.text),
      ...declined(item, request.text),
      guidance(document, request.text, actor),
      startClock(document, now),
    ],
  })
}
