import { GatehouseError } from '../../lib/errors.ts'
import type { SessionItem } from '../../lib/session/item.ts'

/** A sequence, -1 for the beginning, with or without the session that it belongs to. */
export const cursorPattern = /^(?:(ses_[0-9a-z]{26}):)?(-1|0|[1-9]\d*)$/

/** The cursor that names its session, so that it can't be taken for one of another. */
export const cursorOf = ({ id }: SessionItem, sequence: number): string => `${id}:${sequence}`

/** What a client resumes from; the header of a reconnecting stream wins, and an empty one is none. */
type Given = { header: string | undefined; query: string | undefined }

/**
 * The sequence of the last entry that a client has. Throws `invalid_cursor` for one that is no cursor, belongs to
 * another session or lies beyond the journal's end.
 */
export const readCursor = (item: SessionItem, { header, query }: Given): number => {
  const [path, text] = header ? ['Last-Event-ID', header] : ['after', query ?? '-1']
  const refuse = (message: string) =>
    new GatehouseError('invalid_cursor', `${path} ${message}`, { errors: [{ path, message }] })
  const [, session, digits] = cursorPattern.exec(text) ?? []
  if (digits === undefined) throw refuse('has to be the sequence of an entry, or <session id>:<sequence>')
  if (session !== undefined && session !== item.id)
    throw refuse(`is a place in the journal of ${session}, not in that of ${item.id}`)
  const sequence = Number(digits)
  const end = item.journal_head.sequence
  if (sequence > end) throw refuse(`lies beyond the journal of ${item.id}, which ends at ${end}`)
  return sequence
}
