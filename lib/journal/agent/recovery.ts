import { declaredCalls } from './messages.ts'
import type { Projection, ToolCall } from './projection.ts'
import { isAuthorised, isTurnedDown } from './reduce-tools.ts'
import { type AgentState, activeView, project } from './state.ts'
import { isUsed, type View } from './view.ts'

/** What a next record may do about a call or a question; nothing else may, and none of it happens by itself. */
export type Action =
  | 'request'
  | 'decide_policy'
  | 'ask'
  | 'wait'
  | 'resolve_approval'
  | 'expire_approval'
  | 'start'
  | 'close_with_error'
  | 'record_interrupted'
  | 'resolve_as_failed'
  | 'resolve_as_succeeded'
  | 'reoffer'
  | 'commit_result'

/** A call that has no result message yet, and why. */
export type OpenCall = {
  readonly tool_call_id: string
  readonly situation:
    | 'unrequested'
    | 'undecided'
    | 'waiting'
    | 'authorised'
    | 'turned_down'
    | 'outcome_unknown'
    | 'interrupted'
    | 'uncommitted'
  readonly may: readonly Action[]
}

/** How the last run stands: `died_between_turns` and `interrupted` ones can be followed by a new run. */
export type RunSituation =
  | 'clean'
  | 'run_ended'
  | 'run_interrupted'
  | 'run_cancelled'
  | 'died_between_turns'
  | 'waiting_for_approval'
  | 'unfinished_batch'

/** What a folded state allows (spec/session-record.md B.9). `new_run` says whether a run may begin on this branch. */
export type Recovery = {
  readonly run: RunSituation
  readonly new_run: boolean
  readonly calls: readonly OpenCall[]
}

type Situation = Pick<OpenCall, 'situation' | 'may'>

const waiting = (call: ToolCall, { pending_approvals }: Projection, now: string): Situation => {
  const approval = pending_approvals[call.approval_id ?? '']
  if (!approval) return { situation: 'undecided', may: ['ask'] }
  if (now >= approval.expires_at) return { situation: 'waiting', may: ['expire_approval'] }
  return { situation: 'waiting', may: now < approval.requested_at ? ['wait'] : ['resolve_approval', 'wait'] }
}

const notStarted = (call: ToolCall, projection: Projection, now: string): Situation => {
  if (call.policy_decision === null) return { situation: 'undecided', may: ['decide_policy'] }
  if (isTurnedDown(call)) return { situation: 'turned_down', may: ['close_with_error'] }
  if (isAuthorised(call)) return { situation: 'authorised', may: ['start'] }
  return waiting(call, projection, now)
}

const situationOf = (call: ToolCall, projection: Projection, now: string): Situation => {
  const { execution } = call
  switch (execution.status) {
    case 'not_started':
      return notStarted(call, projection, now)
    // Its effect may or may not have come about: whatever its class, it is not run again by itself.
    case 'started':
      return { situation: 'outcome_unknown', may: ['record_interrupted'] }
    case 'interrupted':
      return {
        situation: 'interrupted',
        may: [
          'resolve_as_failed',
          'resolve_as_succeeded',
          ...(execution.idempotency === 'idempotent' ? (['reoffer'] as const) : []),
        ],
      }
    case 'finished':
      return { situation: 'uncommitted', may: ['commit_result'] }
  }
}

/** Calls that a visible message declares and that were never requested. A call that only a summary speaks of is none. */
const unrequested = ({ store, at }: View, { messages, tool_calls }: Projection): OpenCall[] =>
  messages
    .flatMap(declaredCalls)
    .filter(({ tool_call_id: id }) => tool_calls[id] === undefined)
    .filter(({ tool_call_id: id }) => isUsed(store.declarations, id, at))
    .map(({ tool_call_id }) => ({ tool_call_id, situation: 'unrequested', may: ['request'] }))

const runOf = (
  { latest_checkpoint: last, run_recovery, pending_approvals }: Projection,
  open: number,
): RunSituation => {
  const terminal = last && run_recovery[last.run_id]
  if (Object.keys(pending_approvals).length > 0) return 'waiting_for_approval'
  if (open > 0) return 'unfinished_batch'
  if (terminal) return terminal.status === 'cancelled' ? 'run_cancelled' : 'run_interrupted'
  if (last?.next_action === 'finish_run') return 'run_ended'
  return last?.next_action === 'model_request' ? 'died_between_turns' : 'clean'
}

/** What may happen next on the active branch, when nobody is at work on it. `now` is a time as records have it. Pure. */
export const recoveryOf = (state: AgentState, now: string): Recovery => {
  const view = activeView(state)
  const projection = project(view)
  const requested = Object.values(projection.tool_calls)
    .filter((call) => call.result_message_id === null)
    .map((call) => ({ tool_call_id: call.tool_call_id, ...situationOf(call, projection, now) }))
  const calls = [...unrequested(view, projection), ...requested]
  const run = runOf(projection, calls.length)
  return { run, new_run: calls.length === 0 && run !== 'waiting_for_approval', calls }
}
