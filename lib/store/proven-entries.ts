import { GatehouseError } from '../errors.ts'
import { type Entry, emptyHead } from '../journal/entry.ts'
import { entriesOf } from '../journal/lines.ts'
import type { SessionItem } from '../session/item.ts'
import type { Platform } from './platform.ts'

type Parts = Pick<Platform, 'journals' | 'payloads'>

/**
 * The entries of a session up to its item's head, with their data in place, each proven to be the one that was hashed, to
 * follow the one before it, and the last to be the head. Throws `journal_damaged`. The item has to have nothing in its
 * outbox.
 */
export async function* provenEntries(
  { journals, payloads }: Parts,
  item: SessionItem,
): AsyncGenerator<Entry> {
  const { id, journal_head: head } = item
  const damaged = (what: string) => new GatehouseError('journal_damaged', `the journal of ${id} ${what}`)
  let last = emptyHead
  for await (const lines of journals.segments(item))
    for (const entry of entriesOf(id, last.sequence + 1, lines)) {
      if (entry.sequence > head.sequence) return
      if (entry.previous_hash !== last.hash) throw damaged(`is broken before entry ${entry.sequence}`)
      last = { sequence: entry.sequence, hash: entry.hash }
      if (last.sequence === head.sequence && last.hash !== head.hash)
        throw damaged('ends with another entry than was decided')
      yield await payloads.resolve(item, entry)
    }
  if (last.sequence < head.sequence) throw damaged('ends before its head')
}
