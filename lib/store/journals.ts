import { ListObjectsV2Command, type S3Client } from '@aws-sdk/client-s3'
import { GatehouseError, isError } from '../errors.ts'
import type { Entry, Head } from '../journal/entry.ts'
import { entriesOf, linesOf } from '../journal/lines.ts'
import { limits } from '../limits.ts'
import type { Seal } from '../session/item.ts'
import type { Blobs } from './blobs.ts'
import { createDrain } from './drain.ts'
import { objectKey } from './keys.ts'
import { createSealed } from './sealed.ts'

type Id = { team: string; id: string }

/**
 * A session whose journal is read: its item, or as much of it as is known. Without the item's word of a seal, a journal
 * is looked for in segments only.
 */
export type Source = Id & { runtime?: { sealed: Seal | null }; journal_head?: Head }

export type Journals = ReturnType<typeof createJournals>

/** Segments that are read at the same time. */
const readAhead = 8
/** The most keys that S3 lists at once. */
const keysPerListing = 1000

/** Reads some things ahead of who takes them, and gives them in their order, an error in its turn too. */
async function* inOrder<Item, Result>(
  items: readonly Item[],
  read: (item: Item) => Promise<Result>,
): AsyncGenerator<Result> {
  const going: Promise<Result>[] = []
  const waiting = items.values()
  const begin = () => {
    for (const item of waiting) {
      const reading = read(item)
      // Whoever takes no more does not hear of it.
      reading.catch(() => {})
      going.push(reading)
      if (going.length >= readAhead) return
    }
  }
  begin()
  for (let next = going.shift(); next; next = going.shift()) {
    const result = await next
    yield result
    begin()
  }
}

/**
 * A session's journal in the bucket: segments, each under the sequence of its first entry, and once the session is over
 * one sealed object and the segments behind it (DESIGN 4). All that reads throws `journal_damaged` where something else
 * is stored than was written. `current` gives the source as it is now.
 */
export const createJournals = (
  s3: S3Client,
  bucket: string,
  blobs: Blobs,
  current: (id: Id) => Promise<Source | null>,
) => {
  const sealed = createSealed(blobs)
  const sealOf = (source: Source): Seal | null => source.runtime?.sealed ?? null
  /** Where the segments begin that are to be read. */
  const floorOf = (seal: Seal | null): number => (seal ? seal.through + 1 : 0)

  const linesAt = async ({ team, id }: Id, first: number): Promise<string[] | null> => {
    const bytes = await blobs.bytes(objectKey.segment(team, id, first))
    if (bytes === null) return null
    const lines = linesOf(bytes)
    if (!lines) throw new GatehouseError('journal_damaged', `segment ${first} of ${id} is cut off or no text`)
    return lines
  }

  const starts = async ({ team, id }: Id, from: number, max: number): Promise<number[]> => {
    const prefix = objectKey.journalPrefix(team, id)
    const startAfter = from > 0 ? objectKey.segment(team, id, from - 1) : undefined
    const answer = await s3.send(
      new ListObjectsV2Command({
        Bucket: bucket,
        Prefix: prefix,
        MaxKeys: max,
        ...(startAfter ? { StartAfter: startAfter } : {}),
      }),
    )
    return (answer.Contents ?? []).map((object) =>
      Number.parseInt((object.Key ?? '').slice(prefix.length), 10),
    )
  }

  /** The lines of some segments by their order, as far as each begins where the one before it ended. */
  async function* follow(
    id: Id,
    some: readonly number[],
  ): AsyncGenerator<{ first: number; lines: string[] }> {
    let due = some[0] ?? 0
    const read = async (first: number) => ({ first, lines: await linesAt(id, first) })
    for await (const { first, lines } of inOrder(some, read)) {
      if (first < due) continue
      if (first > due || lines === null) return
      yield { first, lines }
      due += lines.length
    }
  }

  /** The lines from a segment's first on, segment by segment, until no other follows. */
  async function* unsealed(id: Id, from: number): AsyncGenerator<string[]> {
    let next = from
    for (;;) {
      const before = next
      const listed = await starts(id, next, keysPerListing)
      if (listed[0] !== next) return
      for await (const { lines } of follow(id, listed)) {
        yield lines
        next += lines.length
      }
      if (next === before || listed.length < keysPerListing) return
    }
  }

  /** At most `limit` entries from one on, which lies in the segments from `floor` on. A segment is no longer than a batch. */
  const page = async (id: Id, floor: number, from: number, limit: number): Promise<Entry[]> => {
    const entries: Entry[] = []
    const end = from + limit
    for (let next = from; next < end; ) {
      const before = next
      const most = Math.min(keysPerListing, end - next + limits.journalBatch.entries)
      const listed = await starts(id, Math.max(floor, next - limits.journalBatch.entries + 1), most)
      const holding = listed.findLastIndex((start) => start <= next)
      const some = holding < 0 ? [] : listed.slice(holding).filter((start) => start < end)
      for await (const { first, lines } of follow(id, some)) {
        entries.push(...entriesOf(id.id, first, lines).filter(({ sequence }) => sequence >= next))
        next = Math.max(next, first + lines.length)
      }
      if (next === before || listed.length < most) break
    }
    return entries.slice(0, limit)
  }

  return {
    drain: createDrain(blobs),

    /**
     * The entries from `first` to the end of the segment or of the sealed frame that holds them; null while they are not
     * written. In segments, `first` has to be the first of one, as is each entry behind an end. Following a session is
     * calling this; one that was sealed meanwhile has no more of its segments, which its item tells.
     */
    segment: async (source: Source, first: number): Promise<Entry[] | null> => {
      const seal = sealOf(source)
      if (seal && first <= seal.through) {
        const end = (Math.floor(first / seal.frame_entries) + 1) * seal.frame_entries - 1
        return sealed.entries(source, seal, first, Math.min(end, seal.through))
      }
      const lines = await linesAt(source, first)
      return lines && entriesOf(source.id, first, lines)
    },

    /**
     * Entries after a sequence (-1 for all), at most `limit`. What is sealed is two reads, of the seek table and of the
     * frames; what is not is a listing and then whole segments, several at once.
     */
    after: async (source: Source, sequence: number, limit: number): Promise<Entry[]> => {
      const seal = sealOf(source)
      const first = sequence + 1
      const to = seal ? Math.min(seal.through, sequence + limit) : -1
      const entries = seal && first <= to ? await sealed.entries(source, seal, first, to) : []
      if (entries.length === limit) return entries
      const rest = await page(source, floorOf(seal), first + entries.length, limit - entries.length)
      return [...entries, ...rest]
    },

    /**
     * The whole journal, some lines at a time, without their newlines and as they are stored. A journal that is sealed
     * while it is read is read on from the seal.
     */
    async *segments(source: Source): AsyncGenerator<string[]> {
      const seal = sealOf(source)
      if (seal) yield* sealed.lines(source, seal, 0)
      let next = floorOf(seal)
      for await (const lines of unsealed(source, next)) {
        yield lines
        next += lines.length
      }
      if (seal || (source.journal_head && next > source.journal_head.sequence)) return
      const now = await current(source)
      const since = now && sealOf(now)
      if (!since || since.through < next) return
      yield* sealed.lines(source, since, next)
      yield* unsealed(source, floorOf(since))
    },

    /** Whether the sealed object is there and what was sealed, to the byte. */
    isSealWhole: async (id: Id, seal: Seal): Promise<boolean> => {
      try {
        for await (const _ of sealed.lines(id, seal, 0));
        return true
      } catch (error) {
        if (isError(error, 'journal_damaged')) return false
        throw error
      }
    },

    /** Removes the segments that a seal covers; harmless to repeat. */
    clear: async (id: Id, { through }: Seal): Promise<void> => {
      for (;;) {
        const covered = (await starts(id, 0, keysPerListing)).filter((start) => start <= through)
        if (covered.length === 0) return
        await blobs.remove(covered.map((start) => objectKey.segment(id.team, id.id, start)))
      }
    },
  }
}
