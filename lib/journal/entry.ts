import { createHash } from 'node:crypto'
import canonicalize from 'canonicalize'
import { z } from 'zod'
import { idSchema, newId } from '../ids.ts'
import { eventFactSchema, type Fact, isRecord, recordFactSchema } from './facts.ts'

/** Who stated a fact: a person by the token's principal, a worker by its id, or a step of the machine by its name. */
export const actorSchema = z.strictObject({ kind: z.enum(['person', 'worker', 'system']), id: z.string() })
export type Actor = z.infer<typeof actorSchema>

/**
 * One journal entry. `kind` says whether a replay needs it (record) or may skip it (event). `hash` is the SHA-256 of
 * the entry's canonical JSON (RFC 8785) without `hash`, and `previous_hash` that of the entry before it.
 */
export const entrySchema = z.strictObject({
  sequence: z.number().int().min(0),
  id: idSchema('evt'),
  session_id: idSchema('ses'),
  branch: z.literal('main'),
  type: z.string(),
  kind: z.enum(['record', 'event']),
  time: z.iso.datetime({ precision: 3 }),
  actor: actorSchema,
  data: z.record(z.string(), z.unknown()),
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

export const sha256 = (text: string): string => `sha256:${createHash('sha256').update(text).digest('hex')}`

export const hashOf = ({ hash: _, ...rest }: Entry): string => sha256(canonical(rest))

/**
 * Text that was cut in the middle of a character has no UTF-8 form: a store would give back another text than was
 * hashed, and RFC 8785 refuses it. Its halves become U+FFFD before anything is made of the facts.
 */
export const wellFormed = <Value>(value: Value): Value =>
  JSON.parse(JSON.stringify(value), (_, inner: unknown) =>
    typeof inner === 'string' ? inner.toWellFormed() : inner,
  )

/** Gives facts their place behind `head`, and tells what of them is written; pure but for the fresh ids. Throws on one that is not of its type: a journal never holds what a replay would refuse. */
export const chain = (
  head: Head,
  facts: readonly Fact[],
  stamp: { sessionId: string; time: string; actor: Actor },
): { entries: Entry[]; facts: Fact[]; head: Head } => {
  let last = head
  const parsed = facts.map((fact): Fact => (isRecord(fact) ? recordFactSchema : eventFactSchema).parse(fact))
  const entries = parsed.map((fact) => {
    const unsigned = {
      sequence: last.sequence + 1,
      id: newId('evt'),
      session_id: stamp.sessionId,
      branch: 'main' as const,
      type: fact.type,
      kind: isRecord(fact) ? ('record' as const) : ('event' as const),
      time: stamp.time,
      actor: stamp.actor,
      data: fact.data,
      previous_hash: last.hash,
    }
    const entry = { ...unsigned, hash: sha256(canonical(unsigned)) }
    last = { sequence: entry.sequence, hash: entry.hash }
    return entry
  })
  return { entries, facts: parsed, head: last }
}

/** The line of an entry in a segment: its canonical JSON, without the newline. */
export const toLine = (entry: Entry): string => canonical(entry)

/** Reads the lines of a segment or a whole journal. Throws on a line that is no entry. */
export const fromLines = (text: string): Entry[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => entrySchema.parse(JSON.parse(line)))
