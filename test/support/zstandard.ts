import { zstdDecompressSync } from 'node:zlib'

const isSkipped = (magic: number) => (magic & 0xfffffff0) >>> 0 === 0x184d2a50

/** Where a frame ends, by its blocks (RFC 8878, 3.1.1); `at` is where it begins. */
const endOf = (bytes: Buffer, at: number): number => {
  const descriptor = bytes.readUInt8(at + 4)
  const isSingle = (descriptor & 0x20) !== 0
  const dictionary = [0, 1, 2, 4][descriptor & 3] ?? 0
  const size = [isSingle ? 1 : 0, 2, 4, 8][descriptor >> 6] ?? 0
  let next = at + 5 + (isSingle ? 0 : 1) + dictionary + size
  for (let isLast = false; !isLast; ) {
    const header = bytes.readUIntLE(next, 3)
    isLast = (header & 1) === 1
    next += 3 + (((header >> 1) & 3) === 1 ? 1 : header >> 3)
  }
  return next + ((descriptor & 4) === 0 ? 0 : 4)
}

/** What `zstd -d` gives for an object: the content of each frame, one behind the other, but not of those to be skipped. */
export const decompressAll = (bytes: Buffer): string => {
  const texts: Buffer[] = []
  for (let at = 0; at < bytes.length; ) {
    if (isSkipped(bytes.readUInt32LE(at))) {
      at += 8 + bytes.readUInt32LE(at + 4)
      continue
    }
    const end = endOf(bytes, at)
    texts.push(zstdDecompressSync(bytes.subarray(at, end)))
    at = end
  }
  return Buffer.concat(texts).toString()
}
