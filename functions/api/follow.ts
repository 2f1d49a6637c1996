import { setTimeout as sleep } from 'node:timers/promises'
import type { SSEStreamingApi } from 'hono/streaming'
import type { Entry } from '../../lib/journal/entry.ts'
import { limits } from '../../lib/limits.ts'
import type { SessionItem } from '../../lib/session/item.ts'
import { isTerminal, stateSchema } from '../../lib/session/states.ts'
import type { Platform } from '../../lib/store/platform.ts'

const waits = { first: 100, most: 1000 } as const

/** Whether this entry is the one after which a session's story is told. */
const isLast = (entry: Entry): boolean =>
  entry.type === 'state_changed' && isTerminal(stateSchema.parse(entry.data.to))

/**
 * Sends a session's entries after `from` as they come, until the terminal one. The next segment's name is known from
 * the last sequence seen, so there is nothing to subscribe to and nothing to lose between replay and live: following
 * is a read that finds nothing yet. A slow reader holds back its own reads and nobody else.
 */
export const follow = async (
  platform: Platform,
  item: SessionItem,
  from: number,
  wanted: (entry: Entry) => boolean,
  sse: SSEStreamingApi,
): Promise<void> => {
  const ended = isTerminal(item.document.state)
  let last = from
  let wait: number = waits.first
  let quietSince = platform.clock()
  await sse.write(': following\n\n')
  // A cursor may lie inside a segment; from its end on, the next segment's name is the next sequence.
  let entries = await platform.journals.after(item, last, limits.eventsPageSize.max)
  while (!sse.aborted && !sse.closed) {
    for (const entry of entries) {
      last = entry.sequence
      if (wanted(entry))
        await sse.writeSSE({ id: String(entry.sequence), event: entry.type, data: JSON.stringify(entry) })
      if (isLast(entry)) return
    }
    if (entries.length > 0) {
      wait = waits.first
      quietSince = platform.clock()
    } else {
      // Resumed behind the terminal entry: there is nothing more to tell.
      if (ended) return
      if (platform.clock() - quietSince >= limits.ssePingMs) {
        await sse.write(': nothing new\n\n')
        quietSince = platform.clock()
      }
      await sleep(wait)
      wait = Math.min(wait * 1.5, waits.most)
    }
    // A full page may end inside a segment.
    entries =
      entries.length === limits.eventsPageSize.max
        ? await platform.journals.after(item, last, limits.eventsPageSize.max)
        : ((await platform.journals.segment(item, last + 1)) ?? [])
  }
}
