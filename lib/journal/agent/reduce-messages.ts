import { isDeepStrictEqual } from 'node:util'
import type { ToolCallBlock } from './content.ts'
import { declaredCalls, type ToolResultMessage } from './messages.ts'
import type { ToolCall } from './projection.ts'
import { duplicateEntity, invalidReference, invalidTransition } from './replay-error.ts'
import {
  contextOf,
  countUnsettled,
  findCall,
  findRecord,
  isUsed,
  isVisible,
  messagesAfter,
  type View,
} from './view.ts'
import { countOpen, onLane, type RecordOf, type Write } from './write.ts'

const requireNewCalls = ({ store, at }: View, calls: readonly ToolCallBlock[]): void => {
  const ids = new Set(calls.map((call) => call.tool_call_id))
  if (ids.size < calls.length || calls.some((call) => isUsed(store.declarations, call.tool_call_id, at)))
    duplicateEntity('tool_call')
}

/** The call that a result message ends, which has to have ended in just this way before; what they share is held once. */
const requireFinished = (view: View, message: ToolResultMessage): ToolCall => {
  const call = findCall(view, message.tool_call_id) ?? invalidReference('tool_result_tool_call')
  if (call.result_message_id !== null) invalidTransition('duplicate_tool_result_message')
  const { execution } = call
  if (
    execution.status !== 'finished' ||
    execution.is_error !== message.is_error ||
    call.tool_name !== message.tool_name ||
    !isDeepStrictEqual(execution.error, message.error) ||
    !isDeepStrictEqual(execution.content, message.content)
  )
    return invalidTransition('tool_result_before_matching_terminal')
  return { ...call, execution: { ...execution, content: message.content } }
}

const isVisibleCall = (view: View, id: string): boolean => {
  const declaration = view.store.declarations.get(id)
  return declaration !== undefined && isVisible(view, id, declaration)
}

export const messageCommitted = (
  view: View,
  { sequence, data: { message } }: RecordOf<'message_committed'>,
): Write => {
  if (isUsed(view.store.messages, message.id, view.at)) duplicateEntity('message')
  const calls = declaredCalls(message)
  if (calls.length > 0) requireNewCalls(view, calls)
  const answered = message.type === 'tool_result' ? requireFinished(view, message) : null
  const settles = answered !== null && isVisibleCall(view, answered.tool_call_id) ? 1 : 0
  return onLane(view, (lane, store) => {
    store.messages.add(message.id, sequence)
    lane.messages.push(sequence, message)
    for (const { tool_call_id } of calls) store.declarations.add(tool_call_id, sequence)
    if (answered)
      lane.calls.set(answered.tool_call_id, sequence, { ...answered, result_message_id: message.id })
    if (calls.length > 0 || settles > 0)
      countOpen(view, lane, sequence, { unsettled: calls.length - settles })
  })
}

/**
 * The summary takes the place of what was said up to the record it names, and of nothing that was said later. Costs as
 * much as there is left to keep.
 */
export const sessionCompacted = (
  view: View,
  { sequence, data: { summary, compacted_through_record_id } }: RecordOf<'session_compacted'>,
): Write => {
  if (summary.type !== 'assistant') invalidTransition('compaction_summary_role')
  const through =
    findRecord(view, compacted_through_record_id)?.sequence ?? invalidReference('compaction_source')
  if (isUsed(view.store.messages, summary.id, view.at)) duplicateEntity('message')
  const before = contextOf(view)
  const context = {
    floor: Math.max(before.floor, through),
    summaries: [
      { through, message: summary },
      ...before.summaries.filter((earlier) => earlier.through > through),
    ],
    latest: { summary, compacted_through_record_id },
  }
  const kept = [...context.summaries.map(({ message }) => message), ...messagesAfter(view, context.floor)]
  const unsettled = countUnsettled(view, kept)
  return onLane(view, (lane, store) => {
    store.messages.add(summary.id, sequence)
    lane.contexts.push(sequence, context)
    lane.open.push(sequence, { unsettled, pending: lane.open.at(view.at)?.pending ?? 0 })
  })
}
