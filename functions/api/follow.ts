import { type GatehouseError, isError } from '../../lib/errors.ts'
import type { Entry } from '../../lib/journal/entry.ts'
import { limits } from '../../lib/limits.ts'
import type { SessionItem } from '../../lib/session/item.ts'
import { isTerminal, stateSchema } from '../../lib/session/states.ts'
import type { Platform } from '../../lib/store/platform.ts'
import { isOver, type Next, type Tail } from '../../lib/store/tail.ts'

/** Whether this entry is the one after which a session's story is told. */
const isLast = ({ type, data }: Entry): boolean => {
  if (type !== 'state_changed') return false
  const { data: state } = stateSchema.safeParse(data.to)
  return state !== undefined && isTerminal(state)
}

/** The entries up to the last one of the story, with it; and whether it is among them. */
const upToLast = (entries: readonly Entry[]): { entries: readonly Entry[]; ended: boolean } => {
  const at = entries.findIndex(isLast)
  return at < 0 ? { entries, ended: false } : { entries: entries.slice(0, at + 1), ended: true }
}

const event = (entry: Entry): string =>
  `id: ${entry.sequence}\nevent: ${entry.type.replaceAll(/[\r\n]/g, ' ')}\ndata: ${JSON.stringify(entry)}\n\n`

/** Has no id: only what is in the journal can be resumed from. */
const resync = ({ code, message }: GatehouseError): string =>
  `event: resync\ndata: ${JSON.stringify({ code, message })}\n\n`

type Parts = Pick<Platform, 'clock'> & { tail: Tail }

type Following = {
  /** The sequence of the last entry that the reader has. */
  from: number
  wanted: (entry: Entry) => boolean
  /** Aborted when the reader is gone. */
  signal: AbortSignal
}

async function* told(
  { clock, tail }: Parts,
  item: SessionItem,
  { from, wanted, signal }: Following,
): AsyncGenerator<string> {
  let last = from
  let next: Next | null = await tail.from(item, from + 1)
  let session = item
  let spokeAt = clock()
  while (!signal.aborted) {
    const { entries, ended } = upToLast(next?.entries ?? [])
    session = next?.item ?? session
    last = entries.at(-1)?.sequence ?? last
    const text = entries.filter(wanted).map(event).join('')
    const isSilent = clock() - spokeAt >= limits.ssePingMs
    if (text !== '' || isSilent) {
      yield text || ': nothing new\n\n'
      spokeAt = clock()
    }
    if (ended || isOver(session, last)) return
    const ms = Math.max(0, spokeAt + limits.ssePingMs - clock())
    const isBehind = entries.length > 0 && last < session.journal_head.sequence
    next = await (isBehind ? tail.from(session, last + 1) : tail.next(session, last + 1, { signal, ms }))
  }
}

/**
 * The text of a session's event stream: the entries after `from` until the terminal one, up to the head that is known by
 * pages and from there a segment at a time as they come. Both go on from the last sequence that was told, so there is no
 * seam between them; and nothing is read before the reader has taken what was read before. A session or a journal that
 * can't be told any more ends it with a `resync`; what may be better at the next try is thrown.
 */
export async function* follow(parts: Parts, item: SessionItem, following: Following): AsyncGenerator<string> {
  yield ': following\n\n'
  try {
    yield* told(parts, item, following)
  } catch (error) {
    if (!isError(error, 'not_found', 'journal_damaged')) throw error
    yield resync(error)
  }
}
