import { type AgentFactType, agentFactSchema } from './records.ts'

/** Facts that only Gatehouse knows; protocol 1.0 has no place for them. */
const additions: ReadonlySet<AgentFactType> = new Set(['approval_expired', 'tool_call_resolved'])

/** The 16 record types of protocol 1.0 (spec/session-record.md B.4). */
export const wireTypes: ReadonlySet<string> = new Set([
  'session_created',
  ...agentFactSchema.options.map((option) => option.shape.type.value).filter((type) => !additions.has(type)),
])

export const isWireType = (type: string): boolean => wireTypes.has(type)
