import type { PendingApproval, ToolCall } from './projection.ts'
import { requireCall } from './reduce-tools.ts'
import { duplicateEntity, invalidReference, invalidTransition } from './replay-error.ts'
import { laneAt } from './store.ts'
import { isUsed, type View } from './view.ts'
import { countOpen, onLane, type RecordOf, type Write } from './write.ts'

export const approvalRequested = (
  view: View,
  { sequence, time, data: { approval_id, tool_call_id, expires_at } }: RecordOf<'approval_requested'>,
): Write => {
  if (isUsed(view.store.approvals, approval_id, view.at)) duplicateEntity('approval')
  const call = requireCall(view, tool_call_id, 'approval_tool_call')
  if (call.policy_decision !== 'require_approval' || call.approval_id !== null || expires_at <= time)
    invalidTransition('approval_request')
  return onLane(view, (lane, store) => {
    store.approvals.add(approval_id, sequence)
    lane.calls.set(tool_call_id, sequence, { ...call, approval_id })
    lane.approvals.set(approval_id, sequence, { approval_id, tool_call_id, requested_at: time, expires_at })
    countOpen(view, lane, sequence, { pending: 1 })
  })
}

/** A fork has no open question to take over, so a pending approval is always the branch's own. */
const requirePending = ({ store, lane, at }: View, id: string): PendingApproval => {
  const approval = laneAt(store, lane).approvals.get(id, at)
  return approval === undefined || approval === 'closed' ? invalidReference('pending_approval') : approval
}

const closed = (
  view: View,
  sequence: number,
  { approval_id, tool_call_id }: PendingApproval,
  approval_decision: NonNullable<ToolCall['approval_decision']>,
): Write => {
  const call = requireCall(view, tool_call_id, 'approval_resolution_tool_call')
  return onLane(view, (lane) => {
    lane.calls.set(tool_call_id, sequence, { ...call, approval_decision })
    lane.approvals.set(approval_id, sequence, 'closed')
    countOpen(view, lane, sequence, { pending: -1 })
  })
}

export const approvalResolved = (
  view: View,
  { sequence, time, data }: RecordOf<'approval_resolved'>,
): Write => {
  const approval = requirePending(view, data.approval_id)
  if (time < approval.requested_at || time >= approval.expires_at)
    invalidTransition('expired_approval_resolution')
  return closed(view, sequence, approval, data.decision.type)
}

/** From the moment on at which a question can be answered no more, it can be closed. */
export const approvalExpired = (
  view: View,
  { sequence, time, data }: RecordOf<'approval_expired'>,
): Write => {
  const approval = requirePending(view, data.approval_id)
  if (time < approval.expires_at) invalidTransition('early_approval_expiry')
  return closed(view, sequence, approval, 'expired')
}
