import type { z } from 'zod'
import { limits } from '../../limits.ts'
import { type AgentRecord, readRecord } from './envelope.ts'
import { isObject, type JsonObject } from './json.ts'
import { lossOf } from './json-scan.ts'
import { statedProblems } from './stated.ts'
import { branchIn, camelCase, idIn, membersIn, timeIn, valueIn } from './wire.ts'
import { isWireType } from './wire-types.ts'

/** What came of a line of the interchange form (spec/session-record.md B.3); looked at in this order. */
export type Decoded =
  | { readonly outcome: 'unsupported_version'; readonly version: string }
  | { readonly outcome: 'unsupported_type'; readonly type: string }
  | { readonly outcome: 'invalid'; readonly problem: string }
  | { readonly outcome: 'record'; readonly record: AgentRecord }

const invalid = (problem: string): Decoded => ({ outcome: 'invalid', problem })

const versionOf = (text: unknown): { major: number; minor: number } | null => {
  const parts = typeof text === 'string' ? /^(0|[1-9]\d{0,4})\.(0|[1-9]\d{0,4})$/.exec(text) : null
  const [major, minor] = [Number(parts?.[1]), Number(parts?.[2])]
  return major <= 0xffff && minor <= 0xffff ? { major, minor } : null
}

/** An unsigned integer of 64 bits in decimal; null for any other spelling. */
const sequenceIn = (text: unknown): number | null =>
  typeof text === 'string' && /^(0|[1-9]\d{0,19})$/.test(text) && BigInt(text) <= 0xffff_ffff_ffff_ffffn
    ? Number(text)
    : null

const text = (value: unknown): string => (typeof value === 'string' ? value : '')

/** The envelope's members by our names; one that is left out, is null or is empty metadata is not there at all. */
const stampIn = (wire: JsonObject): JsonObject => {
  const given = new Map(membersIn(wire))
  const session = text(given.get('session_id'))
  const [causation, correlation] = [given.get('causation_id'), given.get('correlation_id')]
  const [branch, metadata] = [given.get('branch_id'), given.get('metadata')]
  return {
    sequence: sequenceIn(given.get('sequence')),
    id: idIn('evt', text(given.get('record_id'))),
    session_id: idIn('ses', session),
    branch: branch === undefined ? null : branchIn(text(branch), session),
    time: timeIn(text(given.get('timestamp'))),
    ...(causation === undefined ? {} : { causation_id: idIn('cmd', text(causation)) }),
    ...(correlation === undefined ? {} : { correlation_id: idIn('run', text(correlation)) }),
    ...(metadata === undefined || isEmpty(metadata) ? {} : { metadata }),
  }
}

const isEmpty = (value: unknown): boolean => isObject(value) && Object.keys(value).length === 0

/** Takes out the members that the schemas don't know at one place; false when there is no such place. */
const prune = (
  value: unknown,
  { path, keys }: { path: readonly PropertyKey[]; keys: readonly string[] },
): boolean => {
  let target: unknown = value
  for (const step of path)
    target = isObject(target) || Array.isArray(target) ? Reflect.get(target, step) : null
  return isObject(target) && keys.every((key) => Reflect.deleteProperty(target, key))
}

/** ModelRef, and presentations with all that is in them, refuse what they don't know (spec/session-record.md B.5). */
const isStrict = ({ path: [first, second, third] }: z.core.$ZodIssue): boolean =>
  first === 'data' && (second === 'model' || (second === 'presentation' && third === 'value'))

const isUnknownKeys = (issue: z.core.$ZodIssue) => issue.code === 'unrecognized_keys'

/** The envelope's members by the names that the wire has for them. */
const wireNames: Readonly<Record<string, string>> = {
  ...{ id: 'recordId', time: 'timestamp', branch: 'branchId', data: 'payload' },
}

/** What is wrong, in the words of whoever wrote the line. */
const told = ({ path, message }: { path: readonly PropertyKey[]; message: string }): string => {
  const [first, ...rest] = path.map(String)
  const names = [wireNames[first ?? ''] ?? first ?? '', ...rest].map(camelCase)
  return `${names.join('.')}: ${message.replace(/ that starts with [a-z]+_$/, '')}`
}

/** Reads a record as a reader of 1.x has to: optional members that it does not know are ignored. */
const readLeniently = (type: string, stamp: JsonObject, data: unknown): Decoded => {
  const [problem] = statedProblems(type, data)
  if (problem) return invalid(told({ ...problem, path: ['data', ...problem.path] }))
  const value = { ...stamp, type, data }
  let reading = readRecord(value)
  while (!reading.ok) {
    const strict = reading.issues.find((issue) => isUnknownKeys(issue) && isStrict(issue))
    if (strict) return invalid(told({ ...strict, message: 'holds a member that is not known' }))
    const unknown = reading.issues.filter(isUnknownKeys)
    if (unknown.length === 0 || !unknown.every((issue) => prune(value, issue))) {
      const [issue] = reading.issues
      return invalid(issue ? told(issue) : 'not a record')
    }
    reading = readRecord(value)
  }
  return { outcome: 'record', record: reading.record }
}

const parse = (line: string): unknown => {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

/** Decodes one record of the interchange form, as it was written. Never throws. */
export const decode = (line: string): Decoded => {
  if (line.endsWith('\r')) return invalid('the line ends in CR: records end with LF alone')
  const wire = parse(line)
  if (!isObject(wire)) return invalid('not a JSON object')
  const version = versionOf(wire.protocolVersion)
  if (!version) return invalid('protocolVersion: has to be major.minor')
  if (version.major !== 1) return { outcome: 'unsupported_version', version: text(wire.protocolVersion) }
  const { type } = wire
  if (typeof type !== 'string') return invalid('type: is missing')
  if (!isWireType(type))
    return /^[a-z0-9_]+$/.test(type) && type.length <= limits.record.unknownType
      ? { outcome: 'unsupported_type', type }
      : invalid('type: is not a name')
  const loss = lossOf(line, limits.record.lineDepth)
  if (loss !== null) return invalid(loss)
  if (sequenceIn(wire.sequence) === null)
    return invalid('sequence: has to be a decimal string of an unsigned 64-bit integer')
  return readLeniently(type, stampIn(wire), valueIn(wire.payload ?? undefined, text(wire.sessionId)))
}
