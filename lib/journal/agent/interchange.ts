import { type Decoded, decode } from './decode.ts'
import { type AgentRecord, readRecord } from './envelope.ts'
import { apply } from './reducer.ts'
import { AgentReplayError } from './replay-error.ts'
import type { AgentState } from './state.ts'
import { statedProblems } from './stated.ts'
import { uuidOf } from './uuid.ts'
import { branchOut, valueOut } from './wire.ts'
import { isWireType } from './wire-types.ts'

/**
 * A record's data as the wire has it. The profile of a session of ours is its engine, in whose name a colon may stand,
 * which no profile's may: a slash stands for it there.
 */
const wireData = (record: AgentRecord): AgentRecord['data'] =>
  record.type === 'session_created'
    ? { ...record.data, profile_id: record.data.profile_id.replaceAll(':', '/') }
    : record.data

/** Whether protocol 1.0 has a place for a record, with all that it says. */
export const hasPlace = (record: AgentRecord): boolean =>
  isWireType(record.type) && statedProblems(record.type, wireData(record)).length === 0

/**
 * One record in the interchange form (spec/session-record.md B.3), as a line. Who stated it and the hash chain are not
 * part of that form. Throws RangeError for a place that a number does not hold exactly, and TypeError for a record that is
 * none: nothing invalid is ever written.
 */
export const encode = (record: AgentRecord): string => {
  const reading = readRecord(record)
  const issues = reading.ok ? statedProblems(record.type, wireData(record)) : reading.issues
  if (issues.length > 0) throw new TypeError(`not a record: ${issues.map(({ message }) => message)}`)
  const { sequence, id, session_id, branch, time, causation_id, correlation_id, metadata, type } = record
  if (!Number.isSafeInteger(sequence)) throw new RangeError(`sequence ${sequence} is not exact`)
  return JSON.stringify({
    protocolVersion: '1.0',
    type,
    recordId: uuidOf(id),
    sessionId: uuidOf(session_id),
    sequence: String(sequence),
    timestamp: time,
    ...(causation_id === undefined ? {} : { causationId: uuidOf(causation_id) }),
    ...(correlation_id === undefined ? {} : { correlationId: uuidOf(correlation_id) }),
    ...(branch === null ? {} : { branchId: branchOut(branch, session_id) }),
    ...(metadata === undefined || Object.keys(metadata).length === 0 ? {} : { metadata }),
    payload: valueOut(wireData(record), session_id),
  })
}

/**
 * What can't be exported: the first record that protocol 1.0 has no place for. The `exportable` records before it are a
 * legal session by themselves; nothing is bent to fit or left out.
 */
export type Refusal = { readonly sequence: number; readonly type: string; readonly exportable: number }
export type Exported =
  | { readonly ok: true; readonly lines: readonly string[] }
  | { readonly ok: false; readonly refusal: Refusal }

/**
 * A session's records in the interchange form. In a journal other entries stand between the agent's records; on the wire
 * the sequence is a record's place among those that are exported, and every id stays what it is. A compaction through a
 * record before the tail goes out as it is; a reader that takes it for one through the tail, as the first implementation
 * does, shows less of the transcript than we do.
 */
export const exportRecords = (records: Iterable<AgentRecord>): Exported => {
  const lines: string[] = []
  for (const record of records) {
    const { sequence, type } = record
    if (!hasPlace(record)) return { ok: false, refusal: { sequence, type, exportable: lines.length } }
    lines.push(encode({ ...record, sequence: lines.length }))
  }
  return { ok: true, lines }
}

/** Thrown when an import stops; `line` counts from 0. Nothing of the session is imported then. */
export class InterchangeError extends Error {
  readonly line: number
  readonly decoded: Exclude<Decoded, { outcome: 'record' }> | null
  constructor(line: number, decoded: InterchangeError['decoded'], cause?: AgentReplayError) {
    super(`line ${line}: ${decoded ? decoded.outcome : cause?.message}`, { cause })
    this.name = 'InterchangeError'
    this.line = line
    this.decoded = decoded
  }
}

/** A cause is a command unless it is a record of this very session. */
const withCause = (record: AgentRecord, seen: ReadonlySet<string>): AgentRecord => {
  const cause = record.causation_id && `evt${record.causation_id.slice('cmd'.length)}`
  return cause && seen.has(cause) ? { ...record, causation_id: cause } : record
}

const applied = (state: AgentState | null, record: AgentRecord, line: number): AgentState => {
  try {
    return apply(state, record)
  } catch (error) {
    if (error instanceof AgentReplayError) throw new InterchangeError(line, null, error)
    throw error
  }
}

/**
 * Reads a whole session of the interchange form and replays it before anything is made of it. Never merges and never
 * renumbers. Throws InterchangeError at the first line that is refused, and AgentReplayError for no lines at all.
 */
export const importRecords = (lines: Iterable<string>): { records: AgentRecord[]; state: AgentState } => {
  const records: AgentRecord[] = []
  const seen = new Set<string>()
  let state: AgentState | null = null
  for (const line of lines) {
    const decoded = decode(line)
    if (decoded.outcome !== 'record') throw new InterchangeError(records.length, decoded)
    const record = withCause(decoded.record, seen)
    state = applied(state, record, records.length)
    seen.add(record.id)
    records.push(record)
  }
  if (state === null) throw new AgentReplayError({ kind: 'EmptyLog' })
  return { records, state }
}
