import { promisify } from 'node:util'
import { constants, zstdCompress, zstdDecompress } from 'node:zlib'

/**
 * The seekable format of Zstandard (facebook/zstd, contrib/seekable_format): independent frames, and behind them a frame
 * that every decoder skips, which holds the sizes of the others. `zstd -d` gives the whole text (node:zlib gives the
 * first frame's only); who knows the sizes can begin at any frame.
 */

/** The bytes of one frame in the object, and those that it decompresses to. */
export type Frame = { compressed: number; decompressed: number }

const skippableMagic = 0x184d2a5e
const seekableMagic = 0x8f92eab1
const headerBytes = 8
const rowBytes = 8
const footerBytes = 9

const compress = promisify(zstdCompress)
const decompress = promisify(zstdDecompress)

/** One frame, with its content's checksum in it. */
export const compressFrame = (text: Buffer): Promise<Buffer> =>
  compress(text, { params: { [constants.ZSTD_c_checksumFlag]: 1 }, pledgedSrcSize: text.length })

/** The content of a frame; null where the bytes are not a frame of that content's size. */
export const decompressFrame = async (bytes: Buffer, { decompressed }: Frame): Promise<Buffer | null> => {
  try {
    // A damaged frame may promise any size.
    const text = await decompress(bytes, { maxOutputLength: Math.max(1, decompressed) })
    return text.length === decompressed ? text : null
  } catch {
    return null
  }
}

/** How many bytes the seek table of so many frames takes at the object's end. */
export const seekTableBytes = (frames: number): number => headerBytes + rowBytes * frames + footerBytes

/** The seek table; without checksums of its own, since each frame holds one. */
export const writeSeekTable = (frames: readonly Frame[]): Buffer => {
  const table = Buffer.alloc(seekTableBytes(frames.length))
  table.writeUInt32LE(skippableMagic, 0)
  table.writeUInt32LE(table.length - headerBytes, 4)
  for (const [at, { compressed, decompressed }] of frames.entries()) {
    table.writeUInt32LE(compressed, headerBytes + rowBytes * at)
    table.writeUInt32LE(decompressed, headerBytes + rowBytes * at + 4)
  }
  table.writeUInt32LE(frames.length, table.length - footerBytes)
  table.writeUInt32LE(seekableMagic, table.length - 4)
  return table
}

/** The frames of a seek table that was written here; null for any other bytes. */
export const readSeekTable = (table: Buffer): Frame[] | null => {
  const count = (table.length - headerBytes - footerBytes) / rowBytes
  if (!Number.isInteger(count) || count < 0) return null
  const frames = Array.from({ length: count }, (_, at) => ({
    compressed: table.readUInt32LE(headerBytes + rowBytes * at),
    decompressed: table.readUInt32LE(headerBytes + rowBytes * at + 4),
  }))
  return writeSeekTable(frames).equals(table) ? frames : null
}
