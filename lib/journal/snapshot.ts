import { z } from 'zod'
import { documentSchema } from '../session/document.ts'
import { isAgentFactType } from './agent/records.ts'
import { serialisedSchema } from './agent/serialise.ts'
import type { AgentState } from './agent/state.ts'
import { canonical, sha256 } from './entry.ts'

/** Raised whenever a fold makes something else of the same entries: no fold goes on from what an older one made. */
const format = z.literal(1).default(1)

const place = { format, sequence: z.number().int().min(0), hash: z.string() }

/** What the session's part of a journal comes to at one of its entries, which `sequence` and `hash` name. */
export const snapshotSchema = z.strictObject({
  ...place,
  /** The sequence of the agent's last record up to there; null while it has none beyond the session's creation. */
  agent_sequence: z.number().int().nullable(),
  document: documentSchema,
})
export type Snapshot = z.infer<typeof snapshotSchema>

/** The agent's state at one of a journal's entries. */
export const agentSnapshotSchema = z.strictObject({ ...place, agent: serialisedSchema })
export type AgentSnapshot = z.infer<typeof agentSnapshotSchema>

const sealed = (text: string): string => `{"digest":"${sha256(text)}","snapshot":${text}}`

/** A snapshot as it is kept: the same bytes whoever writes it, and their digest. */
export const toSnapshotText = (snapshot: Omit<Snapshot, 'format'> | Omit<AgentSnapshot, 'format'>): string =>
  sealed(canonical({ format: format.parse(undefined), ...snapshot }))

/** The snapshot that was kept; null for anything else, a changed byte and another format included. */
export const fromSnapshotText = <Value>(schema: z.ZodType<Value>, text: string): Value | null => {
  const body = text.slice(sealed('').length - '}'.length, -'}'.length)
  return text === sealed(body) ? (schema.safeParse(JSON.parse(body)).data ?? null) : null
}

const typeSchema = z.object({ kind: z.string(), type: z.string() })

const isLifecycle = (line: string): boolean => {
  const { kind, type } = typeSchema.parse(JSON.parse(line))
  return kind === 'record' && !isAgentFactType(type)
}

/** Whether a multiple of `every` lies behind `before` and not behind `after`. */
const crosses = (before: number, after: number, every: number): boolean =>
  Math.floor(before / every) < Math.floor(after / every)

/**
 * Whether a snapshot is due behind these lines, which follow each other: after each step of the session's life, and often
 * enough between them.
 */
export const isSnapshotDue = (
  lines: readonly { sequence: number; line: string }[],
  every: number,
): boolean => {
  const [first, last] = [lines[0], lines.at(-1)]
  if (!first || !last) return false
  return crosses(first.sequence - 1, last.sequence, every) || lines.some(({ line }) => isLifecycle(line))
}

/**
 * How far apart the agent's snapshots are. Each is as large as all that the agent has said, so they are the further apart
 * the more that is: all of them together stay within a multiple of the last.
 */
export const agentStride = (sequence: number, every: number): number =>
  every * 2 ** Math.max(0, Math.floor(Math.log2(sequence / (8 * every))))

const lastRecord = ({ store }: AgentState, upTo: number): number =>
  store.records.get(store.records.at(upTo) ?? '') ?? 0

/** Whether a snapshot of the agent's state is due, when the last one could be made at `since`. */
export const isAgentSnapshotDue = (agent: AgentState, since: number, every: number): boolean => {
  const last = lastRecord(agent, agent.tail_sequence)
  return crosses(lastRecord(agent, since), last, agentStride(last, every))
}
