import { isUtf8 } from 'node:buffer'
import { GatehouseError } from '../errors.ts'
import { type Entry, fromLine, isIntact } from './entry.ts'

/**
 * The lines in stored bytes, each of which ends with a newline; null for bytes that are not such lines. Bytes that are
 * no UTF-8 are none either: read as text, some of them would look like others.
 */
export const linesOf = (bytes: Buffer): string[] | null => {
  if (!isUtf8(bytes)) return null
  const text = bytes.toString()
  return text.endsWith('\n') ? text.slice(0, -1).split('\n') : null
}

/** Lines as they are stored: each with its newline. */
export const toBytes = (lines: readonly string[]): Buffer =>
  Buffer.from(lines.map((line) => `${line}\n`).join(''))

const entryAt = (sessionId: string, sequence: number, line: string): Entry => {
  let entry: Entry
  try {
    entry = fromLine(line)
  } catch (cause) {
    throw new GatehouseError('journal_damaged', `entry ${sequence} of ${sessionId} is none`, { cause })
  }
  if (entry.sequence !== sequence || entry.session_id !== sessionId || !isIntact(line, entry))
    throw new GatehouseError('journal_damaged', `entry ${sequence} of ${sessionId} is not what was written`)
  return entry
}

/** The entries of a session's lines from a sequence on. Throws `journal_damaged` for a line that is not that entry's. */
export const entriesOf = (sessionId: string, first: number, lines: readonly string[]): Entry[] =>
  lines.map((line, at) => entryAt(sessionId, first + at, line))
