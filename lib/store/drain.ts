import { setTimeout as sleep } from 'node:timers/promises'
import { GatehouseError } from '../errors.ts'
import type { SessionItem } from '../session/item.ts'
import type { Blobs } from './blobs.ts'
import { objectKey } from './keys.ts'

type Segment = { key: string; body: string }

const segmentsOf = ({ team, id, outbox }: Pick<SessionItem, 'team' | 'id' | 'outbox'>): Segment[] =>
  [...Map.groupBy(outbox, ({ segment }) => segment)].map(([first, lines]) => ({
    key: objectKey.segment(team, id, first),
    body: lines.map(({ line }) => `${line}\n`).join(''),
  }))

/**
 * Writes an item's outbox to the journal, in order. Harmless to repeat, and from several places at once, also by who
 * knows less or more than others: lines and segments were fixed by the writes that decided them, so a segment that is
 * there is this very one. Throws `journal_damaged` when other bytes are there, `unavailable` when a segment can't be
 * written for seconds.
 */
export const createDrain = (blobs: Blobs) => {
  /** Creates a segment; what it holds then, which is what another creator gave it where that one came first. */
  const createdOrFound = async ({ key, body }: Segment): Promise<string> => {
    for (let looks = 0; looks < 100; looks++) {
      if (await blobs.create(key, body, 'application/x-ndjson')) return body
      const existing = await blobs.get(key)
      if (existing !== null) return existing
      // Its creator is not done yet.
      await sleep(20)
    }
    throw new GatehouseError('unavailable', `${key} is neither there nor can it be written`)
  }

  /** The segments behind the last that is there, which are all that are not: none is created before the one in front. */
  const missing = async (segments: Segment[]): Promise<Segment[]> => {
    for (let at = segments.length - 2; at >= 0; at--)
      if (await blobs.exists(segments[at]?.key ?? '')) return segments.slice(at + 1)
    return segments
  }

  return async (item: Pick<SessionItem, 'team' | 'id' | 'outbox'>): Promise<void> => {
    const segments = segmentsOf(item)
    const inFront = segments.at(-2)
    // Its writer is most likely at it this moment; if each did the work of all in front, all of them would be slow.
    if (inFront && !(await blobs.exists(inFront.key))) await sleep(20 + Math.random() * 20)
    for (const segment of await missing(segments))
      if ((await createdOrFound(segment)) !== segment.body)
        throw new GatehouseError('journal_damaged', `${segment.key} holds other entries`)
  }
}
