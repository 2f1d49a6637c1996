import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  compressFrame,
  decompressFrame,
  type Frame,
  readSeekTable,
  seekTableBytes,
  writeSeekTable,
} from '../../../lib/store/seekable.ts'
import { decompressAll } from '../../support/zstandard.ts'

const texts = ['one\n'.repeat(300), 'zażółć 🙂\n', `${Array.from({ length: 500 }, (_, n) => n).join(',')}\n`]

const sealed = async () => {
  const parts = await Promise.all(texts.map((text) => compressFrame(Buffer.from(text))))
  const frames = parts.map((part, at): Frame => {
    return { compressed: part.length, decompressed: Buffer.byteLength(texts[at] ?? '') }
  })
  return { parts, frames, whole: Buffer.concat([...parts, writeSeekTable(frames)]) }
}

describe('the seekable format', () => {
  it('is to a plain decoder the whole text', async () => {
    const { whole } = await sealed()
    expect(decompressAll(whole)).toBe(texts.join(''))
  })

  it('tells of each frame where it is and how long, as the format says to the byte', () => {
    const frames = [
      { compressed: 0x01020304, decompressed: 0x05060708 },
      { compressed: 1, decompressed: 0xffffffff },
    ]
    const expected = [
      ...['5e2a4d18', '19000000'],
      ...['04030201', '08070605', '01000000', 'ffffffff'],
      ...['02000000', '00', 'b1ea928f'],
    ]
    expect(writeSeekTable(frames).toString('hex')).toBe(expected.join(''))
    expect(seekTableBytes(2)).toBe(33)
    expect(readSeekTable(writeSeekTable(frames))).toEqual(frames)
    expect(readSeekTable(writeSeekTable([]))).toEqual([])
  })

  it('lets any frame be read by itself', async () => {
    const { whole } = await sealed()
    const frames = readSeekTable(whole.subarray(whole.length - seekTableBytes(texts.length))) ?? []
    let at = 0
    for (const [n, frame] of frames.entries()) {
      const text = await decompressFrame(whole.subarray(at, at + frame.compressed), frame)
      expect(text?.toString()).toBe(texts[n])
      at += frame.compressed
    }
  })

  it.each([
    ['of no table', Buffer.from('no table at all, of any kind')],
    ['too few', writeSeekTable([{ compressed: 1, decompressed: 1 }]).subarray(1)],
    ['none', Buffer.alloc(0)],
    ['with a flag that nobody set', Buffer.from('5e2a4d180900000000000000' + '80' + 'b1ea928f', 'hex')],
  ])('refuses bytes that are %s', (_, bytes) => {
    expect(readSeekTable(bytes)).toBeNull()
  })

  it('never gives another text for a frame of which a byte was changed, or which is cut off', async () => {
    const { parts, frames } = await sealed()
    const damage = fc.record({ n: fc.nat({ max: 2 }), at: fc.nat(), by: fc.integer({ min: 1, max: 255 }) })
    await fc.assert(
      fc.asyncProperty(damage, fc.boolean(), async ({ n, at, by }, isCut) => {
        const [part, frame] = [parts[n], frames[n]]
        if (!part || !frame) throw new Error('no such frame')
        const place = at % part.length
        const other = isCut ? part.subarray(0, place) : Buffer.from(part)
        if (!isCut) other.writeUInt8(other.readUInt8(place) ^ by, place)
        const text = await decompressFrame(other, frame)
        if (isCut) expect(text).toBeNull()
        else expect([null, texts[n]]).toContain(text === null ? null : text.toString())
      }),
      { numRuns: 500 },
    )
  })

  it('takes no more from a frame than its size, whatever it holds', async () => {
    const bomb = await compressFrame(Buffer.alloc(50_000_000))
    expect(await decompressFrame(bomb, { compressed: bomb.length, decompressed: 100 })).toBeNull()
    expect(await decompressFrame(bomb, { compressed: bomb.length, decompressed: 50_000_001 })).toBeNull()
  })
})
