import { isDeepStrictEqual } from 'node:util'
import type { Execution, ToolCall } from './projection.ts'
import { duplicateEntity, invalidReference, invalidTransition } from './replay-error.ts'
import { findCall, findDeclaration, isUsed, type View } from './view.ts'
import { onLane, type RecordOf, type Write } from './write.ts'

/** A call that was requested on this branch; refused under the given name where there is none. */
export const requireCall = (view: View, id: string, reference: string): ToolCall =>
  findCall(view, id) ?? invalidReference(reference)

/** The call as it is from this record on. */
const changed = (view: View, sequence: number, call: ToolCall): Write =>
  onLane(view, (lane) => lane.calls.set(call.tool_call_id, sequence, call))

const executed = (view: View, sequence: number, call: ToolCall, execution: Execution): Write =>
  changed(view, sequence, { ...call, execution })

export const toolCallRequested = (
  view: View,
  { sequence, data: { tool_call_id, tool_name, arguments: given } }: RecordOf<'tool_call_requested'>,
): Write => {
  const declared = findDeclaration(view, tool_call_id) ?? invalidReference('undeclared_tool_call')
  if (declared.tool_name !== tool_name || !isDeepStrictEqual(declared.arguments, given))
    invalidReference('tool_call_declaration_mismatch')
  if (isUsed(view.store.requests, tool_call_id, view.at)) duplicateEntity('tool_call_request')
  return onLane(view, (lane, store) => {
    store.requests.add(tool_call_id, sequence)
    lane.calls.set(tool_call_id, sequence, {
      tool_call_id: declared.tool_call_id,
      tool_name: declared.tool_name,
      arguments: declared.arguments,
      policy_decision: null,
      approval_id: null,
      approval_decision: null,
      execution: { status: 'not_started' },
      result_message_id: null,
    })
  })
}

export const policyDecisionRecorded = (
  view: View,
  { sequence, data }: RecordOf<'policy_decision_recorded'>,
): Write => {
  const call = requireCall(view, data.tool_call_id, 'policy_tool_call')
  if (call.policy_decision !== null) invalidTransition('duplicate_policy_decision')
  return changed(view, sequence, { ...call, policy_decision: data.decision })
}

/** Whether a call may cross into the world: policy or a person has let it. */
export const isAuthorised = ({ policy_decision, approval_decision }: ToolCall): boolean =>
  policy_decision === 'allow' ||
  (policy_decision === 'require_approval' &&
    (approval_decision === 'allow_once' || approval_decision === 'allow_session'))

/** Whether a call that never started has come to its end: refused, or not answered in time. */
export const isTurnedDown = ({ policy_decision, approval_decision }: ToolCall): boolean =>
  policy_decision === 'deny' || approval_decision === 'deny' || approval_decision === 'expired'

export const toolExecutionStarted = (
  view: View,
  { sequence, data: { tool_call_id, execution_target, idempotency } }: RecordOf<'tool_execution_started'>,
): Write => {
  const call = requireCall(view, tool_call_id, 'execution_tool_call')
  if (call.execution.status !== 'not_started' || !isAuthorised(call))
    invalidTransition('tool_execution_start')
  return executed(view, sequence, call, { status: 'started', execution_target, idempotency })
}

export const toolExecutionFinished = (
  view: View,
  { sequence, data: { tool_call_id, ...result } }: RecordOf<'tool_execution_finished'>,
): Write => {
  const call = requireCall(view, tool_call_id, 'tool_terminal_tool_call')
  const { status } = call.execution
  if (status !== 'started' && !(status === 'not_started' && result.is_error && isTurnedDown(call)))
    invalidTransition('tool_execution_finish')
  return executed(view, sequence, call, { status: 'finished', ...result })
}

export const toolExecutionInterrupted = (
  view: View,
  { sequence, data: { tool_call_id, reason } }: RecordOf<'tool_execution_interrupted'>,
): Write => {
  const call = requireCall(view, tool_call_id, 'tool_interruption_tool_call')
  const { execution } = call
  if (execution.status !== 'started') return invalidTransition('tool_execution_interruption')
  return executed(view, sequence, call, { ...execution, status: 'interrupted', reason })
}

/** An interrupted call is settled by somebody's word; only one that was recorded as idempotent may start again. */
export const toolCallResolved = (
  view: View,
  { sequence, data: { tool_call_id, content, error } }: RecordOf<'tool_call_resolved'>,
): Write => {
  const call = requireCall(view, tool_call_id, 'resolved_tool_call')
  const { execution } = call
  if (execution.status !== 'interrupted') return invalidTransition('tool_call_resolution')
  if (content === undefined) {
    if (execution.idempotency !== 'idempotent') invalidTransition('tool_call_reoffer')
    return executed(view, sequence, call, { status: 'not_started' })
  }
  const result = error === undefined ? { is_error: false } : { is_error: true, error }
  return executed(view, sequence, call, { status: 'finished', content, ...result })
}
