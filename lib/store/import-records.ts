import { GatehouseError } from '../errors.ts'
import { beginWith } from '../journal/agent/beginning.ts'
import type { AgentRecord } from '../journal/agent/envelope.ts'
import { InterchangeError, importRecords } from '../journal/agent/interchange.ts'
import { AgentReplayError } from '../journal/agent/replay-error.ts'
import { linesIn } from '../journal/line-stream.ts'
import { segmentsOf } from '../journal/segments.ts'
import { limits } from '../limits.ts'
import { startingItem } from '../session/imported.ts'
import type { Change, SessionItem } from '../session/item.ts'
import { carryOut } from './effects.ts'
import { type ImportedObject, segmentObject, writeObjects } from './imported-objects.ts'
import { objectKey } from './keys.ts'
import type { Platform } from './platform.ts'
import { openUpload, type Upload } from './uploads.ts'

type Id = { team: string; id: string }

/** A refused line; `line` counts from 1. */
const refusedAt = (line: number, outcome: string, detail: string, cause?: unknown): GatehouseError =>
  new GatehouseError('invalid_records', `line ${line} is refused, ${detail}`, {
    extra: { line, outcome },
    cause,
  })

const refused = (error: unknown): unknown => {
  if (error instanceof AgentReplayError) return refusedAt(1, 'invalid', 'there are no records', error)
  if (!(error instanceof InterchangeError)) return error
  const line = error.line + 1
  const { decoded, cause } = error
  switch (decoded?.outcome) {
    case 'unsupported_version':
      return refusedAt(line, decoded.outcome, `version ${decoded.version} is not supported`, error)
    case 'unsupported_type':
      return refusedAt(line, decoded.outcome, `type ${decoded.type} is not supported`, error)
    case 'invalid':
      return refusedAt(line, decoded.outcome, decoded.problem, error)
    default:
      return refusedAt(line, 'out_of_place', cause instanceof Error ? cause.message : '', error)
  }
}

const requireAtMost = (count: number, most: number, what: string): void => {
  if (count > most) throw new GatehouseError('invalid_records', `at most ${most} ${what} can be imported`)
}

async function* bounded(source: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  let seen = 0
  for await (const chunk of source) {
    seen += chunk.length
    requireAtMost(seen, limits.archive.bytes, 'bytes')
    yield chunk
  }
}

const linesOf = async (source: ReadableStream<Uint8Array>): Promise<string[]> => {
  const lines: string[] = []
  try {
    for await (const line of linesIn(bounded(source)))
      requireAtMost(lines.push(line), limits.archive.entries, 'records')
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    throw refusedAt(lines.length + 1, 'invalid', 'it is not UTF-8', error)
  }
  return lines
}

/** All records of an upload, replayed whole. Throws `invalid_records` with the first line that is refused. */
const recordsOf = async (source: ReadableStream<Uint8Array>): Promise<readonly AgentRecord[]> => {
  const lines = await linesOf(source)
  try {
    return importRecords(lines).records
  } catch (error) {
    throw refused(error)
  }
}

async function* objectsOf(
  id: Id,
  { lines, artifacts }: { lines: readonly string[]; artifacts: ReadonlyMap<string, string> },
): AsyncGenerator<ImportedObject> {
  for (const [name, body] of artifacts)
    yield { key: objectKey.artifact(id.team, id.id, name), body, type: 'application/json' }
  for await (const segment of segmentsOf(lines)) yield segmentObject(id, segment)
}

/**
 * Executions are named by their session and are kept for long, and their histories are shown to whoever has the session:
 * an id that any session had here, of whatever team, is taken. Throws `already_exists`.
 */
const requireUnused = async ({ sessions, machine }: Platform, id: Id): Promise<void> => {
  // What is there now is told of, or recognised as this very import's, when its id is reserved.
  if (await sessions.get(id)) return
  if ((await machine.status(machine.executionArn(`${id.id}-1`))) !== 'MISSING')
    throw new GatehouseError('already_exists', `the id ${id.id} was used by a session before`)
}

/**
 * Makes a new session that begins with uploaded records of the interchange form (spec/session-record.md B.3), and starts
 * it. Its id is the records'; `creation` says what it is to do. Nothing is merged and nothing renumbered. Throws
 * `not_found` without an upload, `invalid_records` (nothing is written then), `already_exists`, `conflict`, and what
 * `creation` throws.
 */
export const importRecordsOf = async (
  platform: Platform,
  upload: Upload,
  creation: (sessionId: string) => Change,
): Promise<SessionItem> => {
  const records = await recordsOf(await openUpload(platform, upload))
  const id = { team: upload.team, id: records[0]?.session_id ?? '' }
  const { actor, facts } = creation(id.id)
  const created = facts.find((fact) => fact.type === 'session_created')
  if (!created) throw new TypeError('a session starts with session_created')
  const { lines, state, artifacts } = beginWith(records, created, actor)
  await requireUnused(platform, id)
  const held = await platform.imports.reserve(id, upload.import_id, state.head.hash)
  if ('document' in held) return held
  await writeObjects(platform, held, objectsOf(id, { lines, artifacts }))
  const behind = { actor, facts: facts.filter((fact) => fact !== created) }
  const time = new Date(platform.clock()).toISOString()
  const item = startingItem(id, state, behind, upload.import_id, time)
  return carryOut(platform, await platform.imports.create(item, held))
}
