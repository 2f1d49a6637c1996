import { expect } from 'vitest'
import { z } from 'zod'
import type { JsonObject } from '../../lib/journal/agent/json.ts'
import { restore, serialise, serialisedSchema } from '../../lib/journal/agent/serialise.ts'
import { type AgentState, materialise } from '../../lib/journal/agent/state.ts'
import { canonical, type Entry, fromLine } from '../../lib/journal/entry.ts'
import { journalJsonSchema } from '../../lib/journal/json-schema.ts'
import {
  agentSnapshotSchema,
  fromSnapshotText,
  type Snapshot,
  snapshotSchema,
  toSnapshotText,
} from '../../lib/journal/snapshot.ts'
import { foldState, type JournalState } from '../../lib/journal/state.ts'
import type { Document } from '../../lib/session/document.ts'
import type { SessionItem } from '../../lib/session/item.ts'
import { objectKey } from '../../lib/store/keys.ts'
import type { Platform } from '../../lib/store/platform.ts'
import { proveJournal } from '../../lib/store/proof.ts'

type Parts = Pick<Platform, 'artifacts' | 'blobs' | 'journals' | 'payloads' | 'sessions' | 'states'>

/** The document is the same object until a record changes it. */
const texts = new WeakMap<Document, string>()
const textOf = (document: Document): string => {
  const text = texts.get(document) ?? canonical(document)
  texts.set(document, text)
  return text
}

/** All of a state in bytes, that two folds can be compared by. */
export type Bytes = { head: string; document: string; agent: string; shown: string; last: number | null }
export const bytesOf = ({ head, document, agent, agent_sequence }: JournalState): Bytes => ({
  head: canonical(head),
  document: textOf(document),
  agent: canonical(serialise(agent)),
  shown: canonical(materialise(agent)),
  last: agent_sequence,
})

const variantSchema = z.looseObject({
  properties: z.looseObject({ type: z.looseObject({ const: z.string().optional() }) }),
})
const variants = z.array(variantSchema).parse(journalJsonSchema().oneOf)
const lineSchemas = new Map<string, z.ZodType>()

/** The JSON Schema of a journal's lines without what it says of other types, which costs most of the time. */
const lineSchemaOf = (type: string): z.ZodType => {
  const known = lineSchemas.get(type)
  if (known) return known
  const oneOf = variants.filter(({ properties }) => [undefined, type].includes(properties.type.const))
  const narrowed: JsonObject = { ...journalJsonSchema(), oneOf }
  const schema = z.fromJSONSchema({ ...narrowed })
  lineSchemas.set(type, schema)
  return schema
}

/** A session's entries as their lines have them, with what is still on its way out. */
const linesOf = async ({ journals }: Parts, item: SessionItem): Promise<string[]> => {
  const lines: string[] = []
  for await (const some of journals.segments(item)) lines.push(...some)
  const rest = item.outbox.filter(({ sequence }) => sequence >= lines.length)
  return [...lines, ...rest.map(({ line }) => line)].slice(0, item.journal_head.sequence + 1)
}

const reborn = (bytes: Bytes): AgentState => restore(serialisedSchema.parse(JSON.parse(bytes.agent)))

/** Keys of snapshots up to the last, since others may go on writing to the session. */
const keysOf = async ({ blobs }: Parts, prefix: string, last: string): Promise<string[]> => {
  const keys: string[] = []
  for await (const key of blobs.list(prefix)) keys.push(key)
  return keys.filter((key) => key <= last).toSorted()
}

/** The snapshots that are kept of a session, each proven to be, to the byte, what the fold from zero came to. */
const keptSnapshots = async (
  parts: Parts,
  { team, id }: SessionItem,
  zero: readonly Bytes[],
): Promise<Snapshot[]> => {
  const snapshots: Snapshot[] = []
  for (const key of await keysOf(
    parts,
    objectKey.snapshotPrefix(team, id),
    objectKey.snapshot(team, id, zero.length - 1),
  )) {
    const text = (await parts.blobs.get(key)) ?? ''
    const kept = fromSnapshotText(snapshotSchema, text)
    if (!kept) throw new Error(`${key} holds no snapshot`)
    const { sequence, hash, agent_sequence, document } = kept
    expect(key).toBe(objectKey.snapshot(team, id, sequence))
    expect({
      ...{ head: canonical({ sequence, hash }), document: canonical(document), last: agent_sequence },
    }).toEqual(zero[sequence] && { ...zero[sequence], agent: undefined, shown: undefined })
    expect(toSnapshotText(kept)).toBe(text)
    snapshots.push(kept)
  }
  return snapshots
}

/** The same of the snapshots of the agent. */
const requireAgentSnapshots = async (parts: Parts, { team, id }: SessionItem, zero: readonly Bytes[]) => {
  for (const key of await keysOf(
    parts,
    objectKey.agentSnapshotPrefix(team, id),
    objectKey.agentSnapshot(team, id, zero.length - 1),
  )) {
    const kept = fromSnapshotText(agentSnapshotSchema, (await parts.blobs.get(key)) ?? '')
    if (!kept) throw new Error(`${key} holds no snapshot`)
    const { sequence, hash, agent } = kept
    expect({ head: canonical({ sequence, hash }), agent: canonical(agent) }).toEqual({
      ...{ head: zero[sequence]?.head, agent: zero[sequence]?.agent },
    })
  }
}

/** What entries come to behind a state, at each of them. */
const folds = (start: JournalState | null, entries: readonly Entry[]): Bytes[] => {
  let state = start
  return entries.map((entry) => {
    state = foldState(state, entry)
    return bytesOf(state)
  })
}

/**
 * For every prefix of a session's journal, folding from zero and folding from the nearest snapshot give the same bytes.
 * Each entry is folded twice and no more, whatever the number of prefixes: once from zero, and once from the nearest
 * snapshot before it, going on to the next snapshot. The journal is proven too, and each of its lines is what the JSON
 * Schema says.
 */
export const requirePrefixes = async (parts: Parts, item: SessionItem): Promise<void> => {
  expect(await proveJournal(parts, item)).toMatchObject({ ok: true })
  const entries = (await linesOf(parts, item)).map(fromLine)
  for (const entry of entries)
    expect(lineSchemaOf(entry.type).safeParse(entry).error, entry.type).toBeUndefined()
  const whole = await Promise.all(entries.map((entry) => parts.payloads.resolve(item, entry)))
  const zero = folds(null, whole)
  const snapshots = await keptSnapshots(parts, item, zero)
  await requireAgentSnapshots(parts, item, zero)
  for (const [n, { sequence, hash, document, agent_sequence }] of snapshots.entries()) {
    const bytes = zero[sequence]
    if (!bytes) throw new Error(`the journal has no entry ${sequence}`)
    const start = { head: { sequence, hash }, document, agent: reborn(bytes), agent_sequence }
    const next = snapshots[n + 1]?.sequence ?? whole.length
    expect([bytesOf(start), ...folds(start, whole.slice(sequence + 1, next))]).toEqual(
      zero.slice(sequence, next),
    )
  }
  // And as the service itself does it, at a few places.
  const head = item.journal_head.sequence
  for (const place of new Set([(snapshots.at(-1)?.sequence ?? 1) - 1, head >> 1, head]))
    if (place >= 0) expect(bytesOf(await parts.states.at(item, place))).toEqual(zero[place])
}

/** Every session of a team: `requirePrefixes` holds of it. */
export const requireAllPrefixes = async (
  parts: Parts & Pick<Platform, 'sessions'>,
  team: string,
): Promise<void> => {
  for (let before: string | null = null; ; ) {
    const { items, next } = await parts.sessions.page(team, { limit: 50, before, filter: {} })
    for (const item of items) await requirePrefixes(parts, await parts.sessions.require(item))
    before = next
    if (before === null) return
  }
}
