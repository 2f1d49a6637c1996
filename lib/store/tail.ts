import { setTimeout as sleep } from 'node:timers/promises'
import { GatehouseError } from '../errors.ts'
import type { Entry } from '../journal/entry.ts'
import { limits } from '../limits.ts'
import type { SessionItem } from '../session/item.ts'
import { isTerminal } from '../session/states.ts'
import { drained } from './effects.ts'
import type { Platform } from './platform.ts'

/** The entries that a journal goes on with, none when it has ended; and the session as it was when they were read. */
export type Next = { item: SessionItem; entries: Entry[] }

export type Tail = ReturnType<typeof createTail>

/** Whether a session has nothing behind a sequence and never will have. */
export const isOver = ({ document, journal_head }: SessionItem, sequence: number): boolean =>
  isTerminal(document.state) && journal_head.sequence <= sequence

/** Takes the session anew: it may be sealed, ended or removed, and a writer may have died before it drained. */
const look = async (platform: Platform, known: SessionItem, first: number): Promise<Next> => {
  const item = await drained(platform, known)
  const isWritten = item.journal_head.sequence >= first
  return { item, entries: (isWritten ? await platform.journals.rest(item, first) : null) ?? [] }
}

const isMissing = ({ item, entries }: Next, first: number): boolean =>
  entries.length === 0 && item.outbox.length === 0 && item.journal_head.sequence >= first

/** Looks for what begins with `first` until it is there, the session is over or gone, or nobody waits any more. */
const watch = async (
  platform: Platform,
  known: SessionItem,
  first: number,
  waits: { firstMs: number; mostMs: number; lookMs: number },
  signal: AbortSignal,
): Promise<Next | null> => {
  let item = known
  let wait = waits.firstMs
  let quiet = 0
  let wasMissing = false
  while (!signal.aborted) {
    const entries = await platform.journals.segment(item, first)
    if (entries) return { item, entries }
    await sleep(wait, undefined, { signal }).catch(() => {})
    quiet += wait
    wait = Math.min(wait * 1.5, waits.mostMs)
    if (quiet < waits.lookMs || signal.aborted) continue
    quiet = 0
    const seen = await look(platform, item, first)
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
export const createTail = (platform: Platform, waits = limits.tail) => {
  const polls = new Map<string, Poll>()

  const end = (key: string, poll: Poll): void => {
    if (polls.get(key) === poll) polls.delete(key)
  }

  const begin = (key: string, item: SessionItem, first: number): Poll => {
    const poll: Poll = { waiters: new Set(), stop: new AbortController() }
    polls.set(key, poll)
    watch(platform, item, first, waits, poll.stop.signal).then(
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
    /**
     * What the journal goes on with from `first`, which has to lie right behind a segment's end. Null when there was
     * nothing for `ms`, or `signal` was aborted. Throws `not_found` when the session is removed, `journal_damaged`
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
