import type { PlainContent } from './content.ts'
import { type AssistantMessage, declaredCalls, type Failure, type ToolResultMessage } from './messages.ts'
import type { AgentFact, DataOf } from './records.ts'

/**
 * Facts that become durable together or not at all, in this order. What an engine does in the world happens only
 * between two batches, so that whatever a crash leaves is a state that `recoveryOf` knows a way out of.
 */
export type Batch = readonly [AgentFact, ...AgentFact[]]

/** All that an engine needs of the journal. The promise is kept once the whole batch is durable. */
export type AgentJournal = { append(batch: Batch): Promise<void> }

type Turn = { readonly run_id: string; readonly turn_id: string }
type Result = Omit<DataOf<'tool_execution_finished'>, 'tool_call_id'>

/** How a call ended and the message that tells the model; the two agree by construction. */
export type Ending = {
  readonly message: Pick<ToolResultMessage, 'id' | 'timestamp' | 'tool_call_id' | 'tool_name'>
  readonly result: Result
}

const checkpoint = (turn: Turn, next_action: DataOf<'turn_checkpointed'>['next_action']): AgentFact => ({
  type: 'turn_checkpointed',
  data: { ...turn, next_action },
})

const resultMessage = ({ message, result }: Ending): AgentFact => ({
  type: 'message_committed',
  data: {
    message: {
      type: 'tool_result',
      ...message,
      content: result.content,
      is_error: result.is_error,
      ...(result.error === undefined ? {} : { error: result.error }),
    },
  },
})

/** 3. A call's end and its result message. Whoever ends several calls does it in the model's order (`inModelsOrder`). */
export const toolEnded = (ending: Ending): Batch => [
  {
    type: 'tool_execution_finished',
    data: { tool_call_id: ending.message.tool_call_id, ...ending.result },
  },
  resultMessage(ending),
]

/** 1. An assistant's message that asks for tools, and all its requests, before policy looks at any of them. */
export const toolsAsked = (message: AssistantMessage): Batch => [
  { type: 'message_committed', data: { message } },
  ...declaredCalls(message).map(
    ({ tool_call_id, tool_name, arguments: given }): AgentFact => ({
      type: 'tool_call_requested',
      data: { tool_call_id, tool_name, arguments: given },
    }),
  ),
]

/** 2. Allowed by policy and about to run: before the tool does anything. */
export const toolAllowed = (start: DataOf<'tool_execution_started'>): Batch => [
  { type: 'policy_decision_recorded', data: { tool_call_id: start.tool_call_id, decision: 'allow' } },
  { type: 'tool_execution_started', data: start },
]

/** 3. Results in the order in which the model asked, however they came about. Every call has to have its ending. */
export const inModelsOrder = (message: AssistantMessage, endings: readonly Ending[]): Ending[] => {
  const byCall = new Map(endings.map((ending) => [ending.message.tool_call_id, ending]))
  return declaredCalls(message).map(({ tool_call_id }) => {
    const ending = byCall.get(tool_call_id)
    if (!ending) throw new RangeError(`call ${tool_call_id} has no ending`)
    return ending
  })
}

/** 4. A person is asked; the run returns and waits. */
export const approvalAsked = (turn: Turn, question: DataOf<'approval_requested'>): Batch => [
  {
    type: 'policy_decision_recorded',
    data: { tool_call_id: question.tool_call_id, decision: 'require_approval' },
  },
  { type: 'approval_requested', data: question },
  checkpoint(turn, 'wait_for_approval'),
]

/** The model's view of a call that was not let run. */
export const turnedDown = (error: Failure): Result => ({
  is_error: true,
  content: [{ type: 'text', text: error.message }],
  error,
})

/** 5. Policy refuses the call, or nobody knows the tool. */
export const toolRefused = (message: Ending['message'], error: Failure): Batch => [
  { type: 'policy_decision_recorded', data: { tool_call_id: message.tool_call_id, decision: 'deny' } },
  ...toolEnded({ message, result: turnedDown(error) }),
]

/** 6. Every call of the turn has its result; the model is next. */
export const batchDone = (turn: Turn): Batch => [checkpoint(turn, 'model_request')]

/** 6. The model's last word, or one that it paused at (`pause_turn`) and goes on from. Partial output is never here. */
export const answered = (turn: Turn, message: AssistantMessage): Batch => [
  { type: 'message_committed', data: { message } },
  checkpoint(turn, message.stop_reason === 'pause_turn' ? 'model_request' : 'finish_run'),
]

/** 8. The run failed: first what was in flight, whose outcome nobody knows, then the run. */
export const runFailed = (turn: Turn, reason: string, inFlight: readonly string[]): Batch => {
  const interrupted = inFlight.map(
    (tool_call_id): AgentFact => ({ type: 'tool_execution_interrupted', data: { tool_call_id, reason } }),
  )
  const run: AgentFact = { type: 'run_interrupted', data: { ...turn, reason } }
  const [first, ...others] = interrupted
  return first ? [first, ...others, run] : [run]
}

/** 8. Somebody cancelled the run. */
export const runCancelled = (run_id: string): Batch => [{ type: 'run_cancelled', data: { run_id } }]

/** A person lets the call run, and it is about to. */
export const approvalGranted = (
  approval_id: string,
  decision: 'allow_once' | 'allow_session',
  start: DataOf<'tool_execution_started'>,
): Batch => [
  { type: 'approval_resolved', data: { approval_id, decision: { type: decision } } },
  { type: 'tool_execution_started', data: start },
]

/** A person says no. */
export const approvalDenied = (approval_id: string, message: Ending['message']): Batch => [
  { type: 'approval_resolved', data: { approval_id, decision: { type: 'deny' } } },
  ...toolEnded({
    message,
    result: turnedDown({ code: 'approval_denied', message: 'a person did not allow this call' }),
  }),
]

/** Nobody answered in time. */
export const approvalLapsed = (approval_id: string, message: Ending['message']): Batch => [
  { type: 'approval_expired', data: { approval_id } },
  ...toolEnded({
    message,
    result: turnedDown({ code: 'approval_expired', message: 'nobody allowed this call in time' }),
  }),
]

/** Somebody decides what an interrupted call came to, and the model is told. */
export const interruptionResolved = (
  { message, result }: Ending & { readonly result: { readonly content: PlainContent } },
  by: string,
  reason: string,
): Batch => {
  const { content, error } = result
  return [
    {
      type: 'tool_call_resolved',
      data: {
        tool_call_id: message.tool_call_id,
        decision: error === undefined ? 'succeeded' : 'failed',
        ...{ by, reason, content },
        ...(error === undefined ? {} : { error }),
      },
    },
    resultMessage({ message, result }),
  ]
}
