import { newId } from '../../lib/ids.ts'
import type { PlainContent } from '../../lib/journal/agent/content.ts'
import type { AssistantMessage, Message } from '../../lib/journal/agent/messages.ts'
import type { AgentFact } from '../../lib/journal/agent/records.ts'
import * as order from '../../lib/journal/agent/write-order.ts'

const timestamp = '2030-01-01T00:00:00.000Z'

export const userSays = (text: string): AgentFact & { data: { message: Message } } => ({
  type: 'message_committed',
  data: { message: { type: 'user', id: newId('msg'), timestamp, content: [{ type: 'text', text }] } },
})

/** An assistant's message that asks for a tool once with each of these arguments. */
export const asks = (...given: Record<string, unknown>[]): AssistantMessage => ({
  ...{ type: 'assistant', id: newId('msg'), timestamp, stop_reason: 'tool_use' },
  content: given.map((arguments_) => ({
    ...{ type: 'tool_call', tool_call_id: newId('call'), tool_name: 'read_file', arguments: arguments_ },
  })),
})

export const callsOf = ({ content }: AssistantMessage): string[] =>
  content.flatMap((block) => (block.type === 'tool_call' ? [block.tool_call_id] : []))

export const starts = (tool_call_id: string): order.Batch =>
  order.toolAllowed({ tool_call_id, execution_target: 'native', idempotency: 'non_idempotent' })

export const ends = (tool_call_id: string, content: PlainContent): order.Batch =>
  order.toolEnded({
    message: { id: newId('msg'), timestamp, tool_call_id, tool_name: 'read_file' },
    result: { is_error: false, content },
  })

export const answers = (text: string): AssistantMessage => ({
  ...{ type: 'assistant', id: newId('msg'), timestamp, stop_reason: 'completed' },
  content: [{ type: 'text', text }],
})

export const aTurn = () => ({ run_id: newId('run'), turn_id: newId('turn') })
