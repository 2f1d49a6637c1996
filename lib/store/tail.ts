import { setTimeout as sleep } from 'node:timers/promises'
import { GatehouseError } from '../errors.ts'
import type { Entry } from '../journal/entry.ts'
import { limits } from '../limits.ts'
import type { SessionItem } from '../session/item.ts'
import { isTerminal } from '../session/states.ts'
import { drained } from './effects.ts'
import type { Platform } from './platform.ts'
import { createShared } from './shared.ts'

/** A journal is read in blocks that begin at its multiples. */
const blockEntries = limits.journalBatch.entries

type Id = { team: string; id: string }

/** Entries as a journal goes on with them, none when it has ended; and the session by which they were found. */
export type Next = { item: SessionItem; entries: Entry[] }

export type Tail = ReturnType<typeof createTail>

/** Whether a session has nothing behind a sequence and never will have. */
export const isOver = ({ document, journal_head }: SessionItem, sequence: number): boolean =>
  isTerminal(document.state) && journal_head.sequence <= sequence

/**
 * What followers read of what is there already. They stand anywhere, and when many connect anew at once all read the
 * same blocks of the journal, each of which is then read once.
 */
const createReads = (platform: Platform) => {
  const items = createShared<SessionItem>()
  const blocks = createShared<Entry[]>()
  return {
    /** The session with everything up to its head in the journal. Throws `not_found`. */
    now: ({ team, id }: Id): Promise<SessionItem> =>
      items(`${team}/${id}`, () => drained(platform, { team, id })),

    /** Some entries from `first` on, none beyond the item's head. Does not wait. */
    from: async (item: SessionItem, first: number): Promise<Next> => {
      const start = first - (first % blockEntries)
      const end = Math.min(start + blockEntries, item.journal_head.sequence + 1)
      if (first >= end) return { item, entries: [] }
      const block = await blocks(`${item.team}/${item.id}/${start}/${end}`, () =>
        platform.journals.after(item, start - 1, end - start),
      )
      return { item, entries: block.filter(({ sequence }) => sequence >= first) }
    },
  }
}

const isMissing = ({ item, entries }: Next, first: number): boolean =>
  entries.length === 0 && item.outbox.length === 0 && item.journal_head.sequence >= first

type Waits = { firstMs: number; mostMs: number; lookMs: number }

type Reads = Pick<Platform['journals'], 'segment'> & ReturnType<typeof createReads>

/** Looks for what begins with `first` until it is there, the session is over or gone, or nobody waits any more. */
const watch = async (
  { now, from, segment }: Reads,
  known: SessionItem,
  first: number,
  waits: Waits,
  signal: AbortSignal,
): Promise<Next | null> => {
  let item = known
  let wait = waits.firstMs
  let quiet = 0
  let wasMissing = false
  while (!signal.aborted) {
    const entries = await segment(item, first)
    if (entries) return { item, entries }
    await sleep(wait, undefined, { signal }).catch(() => {})
    quiet += wait
    wait = Math.min(wait * 1.5, waits.mostMs)
    if (quiet < waits.lookMs || signal.aborted) continue
    quiet = 0
    // It may be sealed, ended or removed by now, and a writer may have died before it drained.
    const seen = await from(await now(item), first)
    if (seen.entries.length > 0 || isOver(seen.item, first - 1)) return seen
    const missing = isMissing(seen, first)
    // Once may be a session that was sealed between the two reads of a look; its next look finds the sealed object.
    if (missing && wasMissing)
      throw new GatehouseError('journal_damaged', `entry ${first} of ${item.id} was written and is not there`)
    wasMissing = missing
    item = seen.item
  }
  return null
}

type Waiter = PromiseWithResolvers<Next | null>
type Poll = { waiters: Set<Waiter>; stop: AbortController }

/**
 * Waits for what journals go on with. All who wait in this process for the same entry share one poll, which is there
 * only while somebody waits; so a follower costs a place in a set, and one that is alone in its process a read.
 */
export const createTail = (platform: Platform, waits: Waits = limits.tail) => {
  const polls = new Map<string, Poll>()
  const reads = { ...createReads(platform), segment: platform.journals.segment }

  const end = (key: string, poll: Poll): void => {
    if (polls.get(key) === poll) polls.delete(key)
  }

  const begin = (key: string, item: SessionItem, first: number): Poll => {
    const poll: Poll = { waiters: new Set(), stop: new AbortController() }
    polls.set(key, poll)
    watch(reads, item, first, waits, poll.stop.signal).then(
      (next) => {
        end(key, poll)
        for (const waiter of poll.waiters) waiter.resolve(next)
      },
      (error: unknown) => {
        end(key, poll)
        for (const waiter of poll.waiters) waiter.reject(error)
      },
    )
    return poll
  }

  return {
    now: reads.now,
    from: reads.from,

    /**
     * What the journal goes on with from `first`, which lies behind the item's head. Null when there was nothing for
     * `ms`, or `signal` was aborted. Throws `not_found` when the session is removed, `journal_damaged`
     * when what was written can't be read.
     */
    next: async (
      item: SessionItem,
      first: number,
      { signal, ms }: { signal: AbortSignal; ms: number },
    ): Promise<Next | null> => {
      if (signal.aborted) return null
      const key = `${item.team}/${item.id}/${first}`
      const poll = polls.get(key) ?? begin(key, item, first)
      const waiter: Waiter = Promise.withResolvers()
      const leave = () => waiter.resolve(null)
      const timer = setTimeout(leave, ms)
      signal.addEventListener('abort', leave)
      poll.waiters.add(waiter)
      try {
        return await waiter.promise
      } finally {
        clearTimeout(timer)
        signal.removeEventListener('abort', leave)
        poll.waiters.delete(waiter)
        if (poll.waiters.size === 0) {
          poll.stop.abort()
          end(key, poll)
        }
      }
    },
  }
}
