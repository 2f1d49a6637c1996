import { createHash } from 'node:crypto'
import { GatehouseError } from '../errors.ts'
import type { Entry } from '../journal/entry.ts'
import { entriesOf, linesOf } from '../journal/lines.ts'
import type { Seal } from '../session/item.ts'
import type { Blobs } from './blobs.ts'
import { objectKey } from './keys.ts'
import { decompressFrame, type Frame, readSeekTable, seekTableBytes } from './seekable.ts'

type Id = { team: string; id: string }

/** Frames that are read by one call: so many bytes of the object, and at least one frame. */
const bytesPerRead = 1024 * 1024

const total = (frames: readonly Frame[]): number =>
  frames.reduce((sum, { compressed }) => sum + compressed, 0)

/** Reads journals that were sealed. All of it throws `journal_damaged` where the object is not what was sealed. */
export const createSealed = (blobs: Blobs) => {
  const damaged = ({ id }: Id, what: string): GatehouseError =>
    new GatehouseError('journal_damaged', `the sealed journal of ${id} ${what}`)

  const read = async (id: Id, { sha256, bytes: of }: Seal, from: number, length: number): Promise<Buffer> => {
    const bytes = await blobs.bytes(objectKey.sealed(id.team, id.id, sha256), { from, length, of })
    if (bytes === null) throw damaged(id, 'is missing or of another size')
    return bytes
  }

  /** The object's frames, and the bytes that tell of them. */
  const frames = async (id: Id, seal: Seal): Promise<{ frames: Frame[]; table: Buffer }> => {
    const count = Math.ceil((seal.through + 1) / seal.frame_entries)
    const length = seekTableBytes(count)
    const table = await read(id, seal, seal.bytes - length, length)
    const found = readSeekTable(table)
    if (!found || total(found) + length !== seal.bytes) throw damaged(id, 'has no seek table of its size')
    return { frames: found, table }
  }

  /** The lines in some frames that stand one behind the other, the first of which is the one of this number. */
  const lines = async (
    id: Id,
    seal: Seal,
    { first, some, bytes }: { first: number; some: readonly Frame[]; bytes: Buffer },
  ): Promise<string[]> => {
    const all: string[] = []
    let at = 0
    for (const [n, frame] of some.entries()) {
      const text = await decompressFrame(bytes.subarray(at, at + frame.compressed), frame)
      const found = text && linesOf(text)
      const due = Math.min(seal.frame_entries, seal.through + 1 - (first + n) * seal.frame_entries)
      if (found?.length !== due) throw damaged(id, `has no frame ${first + n} of ${due} entries`)
      all.push(...found)
      at += frame.compressed
    }
    return all
  }

  return {
    /** The entries from one sequence to another, which the seal has to cover. Reads the seek table and then all at once. */
    entries: async (id: Id, seal: Seal, from: number, to: number): Promise<Entry[]> => {
      const { frames: all } = await frames(id, seal)
      const first = Math.floor(from / seal.frame_entries)
      const some = all.slice(first, Math.floor(to / seal.frame_entries) + 1)
      const bytes = await read(id, seal, total(all.slice(0, first)), total(some))
      const begin = first * seal.frame_entries
      const found = await lines(id, seal, { first, some, bytes })
      return entriesOf(id.id, from, found.slice(from - begin, to + 1 - begin))
    },

    /**
     * The lines from a sequence on, without their newlines, some frames at a time. Read from the first on, the last are
     * only given once the whole object was proven to be what was sealed, to the byte.
     */
    async *lines(id: Id, seal: Seal, from: number): AsyncGenerator<string[]> {
      const { frames: all, table } = await frames(id, seal)
      const hash = createHash('sha256')
      let first = Math.floor(from / seal.frame_entries)
      let at = total(all.slice(0, first))
      let skipped = from - first * seal.frame_entries
      while (first < all.length) {
        let last = first + 1
        while (last < all.length && total(all.slice(first, last + 1)) <= bytesPerRead) last += 1
        const some = all.slice(first, last)
        const bytes = await read(id, seal, at, total(some))
        hash.update(bytes)
        if (last === all.length && from === 0 && hash.update(table).digest('hex') !== seal.sha256)
          throw damaged(id, 'is not what was sealed')
        yield (await lines(id, seal, { first, some, bytes })).slice(skipped)
        skipped = 0
        first = last
        at += bytes.length
      }
    },
  }
}
