import { hash } from 'node:crypto'
import canonicalize from 'canonicalize'
import { z } from 'zod'
import { idSchema, newId } from '../ids.ts'
import { isObject } from './agent/json.ts'
import { branchSchema } from './agent/records.ts'
import { metadataSchema, v7IdSchema } from './agent/scalars.ts'
import { type Fact, factSchema, isRecord } from './facts.ts'
import { isPlainEntry } from './plain-entry.ts'

/** Who stated a fact: a person by the token's principal, a worker by its id, or a step of the machine by its name. */
export const actorSchema = z.strictObject({ kind: z.enum(['person', 'worker', 'system']), id: z.string() })
export type Actor = z.infer<typeof actorSchema>

/** Where the data of an entry is that is too large for it: an artifact of the session, by its size and its SHA-256 in hex. */
export const dataRefSchema = z.strictObject({
  artifact: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/),
  bytes: z.number().int().min(0),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
})
export type DataRef = z.infer<typeof dataRefSchema>

/**
 * One journal entry. `kind` says whether a replay needs it (record) or may skip it (event). `hash` is the SHA-256 of
 * the entry's canonical JSON (RFC 8785) without `hash`, and `previous_hash` that of the entry before it.
 */
export const entrySchema = z.strictObject({
  sequence: z.number().int().min(0),
  id: idSchema('evt'),
  session_id: idSchema('ses'),
  /** Null only for records of a session that was imported without branches. */
  branch: branchSchema.nullable(),
  type: z.string(),
  kind: z.enum(['record', 'event']),
  time: z.iso.datetime({ precision: 3 }),
  actor: actorSchema,
  /** The command or the record that caused this one. */
  causation_id: z.union([v7IdSchema('cmd'), v7IdSchema('evt')]).optional(),
  /** Usually the run. */
  correlation_id: v7IdSchema('run').optional(),
  metadata: metadataSchema.optional(),
  /** Empty where `data_ref` says where the data is. */
  data: z.custom<Record<string, unknown>>(isObject, 'has to be a JSON object').meta({ type: 'object' }),
  data_ref: dataRefSchema.optional(),
  previous_hash: z.string(),
  hash: z.string(),
})
export type Entry = z.infer<typeof entrySchema>

/** The last entry of a journal: its place and its hash. A journal without entries has sequence -1. */
export const headSchema = z.strictObject({ sequence: z.number().int(), hash: z.string() })
export type Head = z.infer<typeof headSchema>

export const emptyHead: Head = { sequence: -1, hash: `sha256:${'0'.repeat(64)}` }

/** RFC 8785 bytes of a JSON value, as text. Throws for what JSON can't hold, such as NaN. */
export const canonical = (value: unknown): string => {
  const text = canonicalize(value)
  if (text === undefined) throw new TypeError('not a JSON value')
  return text
}

export const sha256 = (text: string): string => `sha256:${hash('sha256', text)}`

export const hashOf = ({ hash: _, ...rest }: Entry): string => sha256(canonical(rest))

/**
 * Text that was cut in the middle of a character has no UTF-8 form: a store would give back another text than was
 * hashed, and RFC 8785 refuses it. Its halves become U+FFFD before anything is made of the facts.
 */
export const wellFormed = <Value>(value: Value): Value => {
  const text = JSON.stringify(value)
  // Only a half is written as an escape; most facts have none, and need no look at each of their texts.
  return /\\ud[89a-f]/i.test(text)
    ? JSON.parse(text, (_, inner: unknown) => (typeof inner === 'string' ? inner.toWellFormed() : inner))
    : JSON.parse(text)
}

/** What an entry says beside its fact; `data_ref` tells that the fact's data is there and not in the entry. */
export type Context = Partial<
  Pick<Entry, 'id' | 'time' | 'branch' | 'causation_id' | 'correlation_id' | 'metadata' | 'data_ref'>
>
/** A fact as somebody states it. */
export type Statement = Fact & { readonly context?: Context }

/** The members that stand behind the hash in an entry's canonical line, as they stand there. */
const behindHash = (entry: Omit<Entry, 'hash'>): string => {
  const { id, kind, metadata, previous_hash, sequence, session_id, time, type } = entry
  const placed = { previous_hash, sequence, session_id, time, type }
  // Texts and a whole number in their order are canonical as they are written.
  return metadata === undefined
    ? JSON.stringify({ id, kind, ...placed }).slice(1)
    : canonical({ id, kind, metadata, ...placed }).slice(1)
}

/** An entry with its hash, and its line, which is its canonical JSON. */
const signed = (unsigned: Omit<Entry, 'hash'>): { entry: Entry; line: string } => {
  const text = canonical(unsigned)
  const own = sha256(text)
  const behind = behindHash(unsigned)
  const line = `${text.slice(0, text.length - behind.length)}"hash":"${own}",${behind}`
  return { entry: { ...unsigned, hash: own }, line }
}

/**
 * Gives facts their place behind `head`, and tells what of them is written, with the lines; pure but for the fresh ids.
 * Throws on one that is not of its type: a journal never holds what a replay would refuse.
 */
export const chain = (
  head: Head,
  statements: readonly Statement[],
  stamp: { sessionId: string; time: string; actor: Actor },
): { entries: Entry[]; lines: string[]; facts: Fact[]; head: Head } => {
  let last = head
  const lines: string[] = []
  const facts = statements.map(({ type, data }): Fact => factSchema.parse({ type, data }))
  const entries = facts.map((fact, at) => {
    const context = statements[at]?.context ?? {}
    const unsigned = {
      sequence: last.sequence + 1,
      id: newId('evt'),
      session_id: stamp.sessionId,
      branch: 'main',
      type: fact.type,
      kind: isRecord(fact) ? ('record' as const) : ('event' as const),
      time: stamp.time,
      actor: stamp.actor,
      data: context.data_ref ? {} : fact.data,
      ...context,
      previous_hash: last.hash,
    }
    const { entry, line } = signed(unsigned)
    lines.push(line)
    last = { sequence: entry.sequence, hash: entry.hash }
    return entry
  })
  return { entries, lines, facts, head: last }
}

/** The line of an entry in a segment: its canonical JSON, without the newline. */
export const toLine = (entry: Entry): string => canonical(entry)

const isPlain = (value: unknown): value is Entry => isPlainEntry(value)

/** Reads the line of an entry. Throws on one that is none. */
export const fromLine = (line: string): Entry => {
  const value: unknown = JSON.parse(line)
  return isPlain(value) ? value : entrySchema.parse(value)
}

/** Reads the lines of a segment or a whole journal. Throws on a line that is no entry. */
export const fromLines = (text: string): Entry[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map(fromLine)

/**
 * Whether a line is, to the byte, the one that was hashed. The hash is taken over the line's own bytes with the hash cut
 * out of them, so that a change that means the same JSON is found too, and nothing is written anew to be compared. The
 * hash has its place right before `id`; nobody can write an entry's hash anywhere else into what it is the hash of.
 */
export const isIntact = (line: string, entry: Entry): boolean => {
  const cut = `"hash":"${entry.hash}",`
  const at = line.lastIndexOf(cut)
  const end = at + cut.length
  return at > 0 && line.startsWith('"id":', end) && sha256(line.slice(0, at) + line.slice(end)) === entry.hash
}
