import { type GatehouseError, isError } from '../errors.ts'
import { type Entry, fromLines } from '../journal/entry.ts'
import { type Verification, verifyJournal } from '../journal/verify.ts'
import type { SessionItem } from '../session/item.ts'
import type { Platform } from './platform.ts'

type Id = { team: string; id: string }
type Parts = Pick<Platform, 'sessions' | 'journals'>

/** Looks at a session that others write to until its journal is not ahead of what was read of the item. */
const looks = 20

/** What the bucket holds of a journal up to an item's head, and what of that could not be read. */
const stored = async (
  { journals }: Parts,
  item: SessionItem,
): Promise<{ entries: Entry[]; unreadable: GatehouseError | null }> => {
  const entries: Entry[] = []
  try {
    while (entries.length <= item.journal_head.sequence) {
      const segment = await journals.segment(item, entries.length)
      if (!segment?.length) break
      entries.push(...segment)
    }
  } catch (error) {
    if (!isError(error, 'journal_damaged')) throw error
    return { entries, unreadable: error }
  }
  return { entries, unreadable: null }
}

/** The entries that were decided and are still to reach the bucket, from a sequence on. */
const undrained = ({ outbox }: SessionItem, from: number): Entry[] =>
  fromLines(
    outbox
      .filter(({ sequence }) => sequence >= from)
      .map(({ line }) => line)
      .join('\n'),
  )

/** Whether another write came between reading the item and its journal, which then holds more than the item knows of. */
const isAhead = (entries: readonly Entry[], { journal_head: head }: SessionItem): boolean =>
  (entries.at(-1)?.sequence ?? -1) > head.sequence

/**
 * Proves a session's journal up to its head, also while others write to it; a segment that can't even be read is a finding
 * like any other. Throws `not_found` for a session that is not there.
 */
export const proveJournal = async (parts: Parts, id: Id): Promise<Verification> => {
  for (let look = 1; ; look++) {
    const item = await parts.sessions.require(id)
    const { entries, unreadable } = await stored(parts, item)
    if (look < looks && isAhead(entries, item)) {
      // With nothing written since, nobody decided what lies behind the head: that is a finding.
      const { revision } = await parts.sessions.require(id)
      if (revision !== item.revision) continue
    }
    if (!unreadable) entries.push(...undrained(item, entries.length))
    const { journal_head: head, document } = item
    const found = verifyJournal(entries, { head, document })
    // What could be read may be damaged before; else the first bad place is where reading stopped.
    if (!unreadable || (found.problem && found.problem.sequence < entries.length)) return found
    return { ...found, ok: false, problem: { sequence: entries.length, message: unreadable.message } }
  }
}
