import { GatehouseError } from '../errors.ts'
import type { AgentRecord } from '../journal/agent/envelope.ts'
import { agentRecordOf } from '../journal/agent/from-entry.ts'
import { encode, hasPlace, type Refusal } from '../journal/agent/interchange.ts'
import type { SessionItem } from '../session/item.ts'
import type { Platform } from './platform.ts'
import { provenEntries } from './proven-entries.ts'

type Parts = Pick<Platform, 'journals' | 'payloads'>

async function* recordsOf(parts: Parts, item: SessionItem): AsyncGenerator<AgentRecord> {
  for await (const entry of provenEntries(parts, item)) {
    const record = agentRecordOf(entry)
    if (record) yield record
  }
}

const refusalOf = async (parts: Parts, item: SessionItem): Promise<Refusal | null> => {
  let exportable = 0
  for await (const record of recordsOf(parts, item)) {
    if (!hasPlace(record)) return { sequence: record.sequence, type: record.type, exportable }
    exportable++
  }
  return null
}

async function* linesOf(parts: Parts, item: SessionItem): AsyncGenerator<string> {
  let sequence = 0
  for await (const record of recordsOf(parts, item)) yield `${encode({ ...record, sequence: sequence++ })}\n`
}

/**
 * A session's records in the interchange form (spec/session-record.md B.3), a line each, as a stream. The journal is read
 * and proven once before that, so that what can't be exported is refused before anything was sent. Throws `not_exportable`
 * for a record that protocol 1.0 has no place for, `journal_damaged`. The item has to have nothing in its outbox.
 */
export const exportRecordsOf = async (parts: Parts, item: SessionItem): Promise<ReadableStream<string>> => {
  const record = await refusalOf(parts, item)
  if (record)
    throw new GatehouseError(
      'not_exportable',
      `protocol 1.0 has no place for ${record.type} at entry ${record.sequence}; ${record.exportable} records stand before it`,
      { extra: { record } },
    )
  return ReadableStream.from(linesOf(parts, item))
}
