import { declaredCalls } from '../journal/agent/messages.ts'
import { recoveryOf } from '../journal/agent/recovery.ts'
import { activeView, project } from '../journal/agent/state.ts'
import { laneAt } from '../journal/agent/store.ts'
import { modelMessages } from '../journal/agent/transcript.ts'
import type { JournalState } from '../journal/state.ts'
import type { AgentView, Transcript } from './agent-protocol.ts'

/** What a restarted engine is told of the active branch, but for its messages; `now` is a time as records have it. Pure. */
export const agentView = ({ head, agent }: JournalState, now: string): AgentView => {
  const view = activeView(agent)
  const { latest_checkpoint: checkpoint, messages, tool_calls } = project(view)
  const declared = new Map(messages.flatMap(declaredCalls).map((call) => [call.tool_call_id, call]))
  const callOf = (id: string) => tool_calls[id] ?? declared.get(id)
  const { calls, ...recovery } = recoveryOf(agent, now)
  return {
    sequence: head.sequence,
    branch: laneAt(agent.store, view.lane).branch,
    ...recovery,
    checkpoint,
    calls: calls.map(({ tool_call_id, situation, may }) => ({
      tool_call_id,
      tool_name: callOf(tool_call_id)?.tool_name ?? '',
      arguments: callOf(tool_call_id)?.arguments ?? {},
      approval_id: tool_calls[tool_call_id]?.approval_id ?? null,
      situation,
      may: [...may],
    })),
  }
}

/** The active branch's messages for a model, as plain JSON. Pure. */
export const transcriptOf = ({ agent }: JournalState): Transcript =>
  JSON.parse(JSON.stringify({ messages: modelMessages(activeView(agent)) }))
