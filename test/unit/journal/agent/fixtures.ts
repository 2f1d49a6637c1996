import { readdirSync, readFileSync } from 'node:fs'
import { z } from 'zod'
import { type Decoded, decode } from '../../../../lib/journal/agent/decode.ts'
import { type AgentRecord, readRecord } from '../../../../lib/journal/agent/envelope.ts'

const folder = new URL('../../../conformance/', import.meta.url)

export const readJson = (path: string): unknown => JSON.parse(readFileSync(new URL(path, folder), 'utf8'))

export const namesIn = (path: string): string[] => readdirSync(new URL(path, folder)).sort()

const json = z.record(z.string(), z.unknown())

const expectation = z.discriminatedUnion('outcome', [
  z.strictObject({ outcome: z.enum(['accepted', 'invalid']) }),
  z.strictObject({ outcome: z.literal('unsupported_version'), version: z.string() }),
  z.strictObject({ outcome: z.literal('unsupported_type'), type: z.string() }),
  z.strictObject({ outcome: z.literal('refused'), problem: z.looseObject({ kind: z.string() }) }),
])

/**
 * One example. `given` names the history that the record follows ("" for none; left out where only the decoder is asked),
 * `before` are further records behind it; `fill` puts a long text into the record, and `text` is a line as it was written.
 */
const caseSchema = z.strictObject({
  name: z.string(),
  rules: z.array(z.string()).min(1),
  given: z.string().optional(),
  before: z.array(json).default([]),
  record: json.optional(),
  text: z.string().optional(),
  fill: z.strictObject({ path: z.string(), text: z.string(), times: z.number() }).optional(),
  expect: expectation,
  /** What the state holds afterwards, in part. */
  state: json.optional(),
})
export type Case = z.infer<typeof caseSchema>

const fileSchema = z.strictObject({ type: z.string(), cases: z.array(caseSchema).min(1) })

export const recordFiles = namesIn('records/').map((file) => ({
  file,
  ...fileSchema.parse(readJson(`records/${file}`)),
}))

const histories = z.record(z.string(), z.array(json)).parse(readJson('histories.json'))

/** A record in the interchange form or, of Gatehouse's own two types, in the journal's. */
const read = (value: unknown): Decoded => {
  if (typeof value === 'object' && value !== null && 'session_id' in value) {
    const reading = readRecord(value)
    return reading.ok
      ? { outcome: 'record', record: reading.record }
      : { outcome: 'invalid', problem: JSON.stringify(reading.issues) }
  }
  return decode(JSON.stringify(value))
}

export const requireRecord = (value: unknown): AgentRecord => {
  const decoded = read(value)
  if (decoded.outcome !== 'record') throw new Error(`${JSON.stringify(decoded)}: ${JSON.stringify(value)}`)
  return decoded.record
}

export const history = (name: string): AgentRecord[] => {
  const records = histories[name]
  if (name !== '' && !records) throw new Error(`there is no history ${name}`)
  return (records ?? []).map(requireRecord)
}
export const historyNames = Object.keys(histories)

/** Puts a value at a dotted path into a copy. */
const put = (value: unknown, [key, ...rest]: string[], leaf: unknown): unknown => {
  if (key === undefined) return leaf
  if (Array.isArray(value))
    return value.map((member, place) => (place === Number(key) ? put(member, rest, leaf) : member))
  const object = json.parse(value)
  return { ...object, [key]: put(object[key], rest, leaf) }
}

/** What the decoder makes of a case's record. */
export const decodeCase = ({ text, record, fill }: Case): Decoded => {
  if (text !== undefined) return decode(text)
  return read(fill ? put(record, fill.path.split('.'), fill.text.repeat(fill.times)) : record)
}
