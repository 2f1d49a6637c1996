import { ListObjectsV2Command, type S3Client } from '@aws-sdk/client-s3'
import { GatehouseError } from '../errors.ts'
import { type Entry, fromLines } from '../journal/entry.ts'
import { limits } from '../limits.ts'
import type { Blobs } from './blobs.ts'
import { createDrain } from './drain.ts'
import { objectKey } from './keys.ts'

type Id = { team: string; id: string }

export type Journals = ReturnType<typeof createJournals>

/** The lines of a segment, which each end with a newline; null for a text that is not made of such lines. */
const linesOf = (text: string): string[] | null =>
  text.endsWith('\n') ? text.slice(0, -1).split('\n') : null

/** A session's journal as segments in the bucket; a segment's key is the sequence of its first entry. */
export const createJournals = (s3: S3Client, bucket: string, blobs: Blobs) => {
  const segment = async ({ team, id }: Id, first: number): Promise<Entry[] | null> => {
    const text = await blobs.get(objectKey.segment(team, id, first))
    if (text === null) return null
    try {
      return fromLines(text)
    } catch (cause) {
      throw new GatehouseError('journal_damaged', `segment ${first} of ${id} holds a line that is no entry`, {
        cause,
      })
    }
  }

  const firstSequences = async ({ team, id }: Id, from: number, max: number): Promise<number[]> => {
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

  /** Where the segment that holds `sequence` begins; null beyond the end. A segment is never longer than a batch. */
  const segmentStart = async (id: Id, sequence: number): Promise<number | null> => {
    const from = Math.max(0, sequence - limits.journalBatch.entries + 1)
    const starts = await firstSequences(id, from, limits.journalBatch.entries + 1)
    return starts.filter((start) => start <= sequence).at(-1) ?? null
  }

  return {
    drain: createDrain(blobs),

    /** The segment that begins with `first`; null while it is not written. Following a session is calling this. */
    segment,

    /** Entries after a sequence (-1 for all), at most `limit`. Reads one listing and then whole segments. */
    after: async (id: Id, sequence: number, limit: number): Promise<Entry[]> => {
      const entries: Entry[] = []
      let next = await segmentStart(id, sequence + 1)
      while (next !== null && entries.length < limit) {
        const found = await segment(id, next)
        if (!found?.length) break
        entries.push(...found.filter((entry) => entry.sequence > sequence))
        next += found.length
      }
      return entries.slice(0, limit)
    },

    /**
     * The whole journal, segment by segment, as its lines without their newlines. Throws `journal_damaged` for a segment
     * that does not end where a line ends.
     */
    async *segments({ team, id }: Id): AsyncGenerator<string[]> {
      let next = 0
      for (;;) {
        const text = await blobs.get(objectKey.segment(team, id, next))
        if (text === null) return
        const lines = linesOf(text)
        if (!lines) throw new GatehouseError('journal_damaged', `segment ${next} of ${id} is cut off`)
        yield lines
        next += lines.length
      }
    },
  }
}
