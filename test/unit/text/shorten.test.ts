import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  ellipsised,
  firstBytes,
  firstOf,
  headLength,
  lastBytes,
  tailStart,
} from '../../../lib/text/shorten.ts'

/** Characters as people see them, of one and of many code points. */
const characters = [
  'a',
  ' ',
  '\n',
  '\r\n',
  'é',
  'e\u0301',
  '€',
  '😀',
  '🇫🇷',
  '👍🏽',
  '👨\u200d👩\u200d👧\u200d👦',
  '❤\ufe0f',
  'நி',
]

/** A text with its boundaries; flags do not follow each other, since where a row of them is cut depends on its start. */
const texts = fc
  .array(fc.constantFrom(...characters), { maxLength: 60 })
  .map((all) => all.filter((one, at) => one !== '🇫🇷' || all[at - 1] !== '🇫🇷'))
  .map((all) => all.join(''))

const boundaries = (text: string): Set<number> => {
  const segments = [...new Intl.Segmenter('en', { granularity: 'grapheme' }).segment(text)]
  return new Set([...segments.map(({ index }) => index), text.length])
}

const longest = 30

describe('a text that is cut', () => {
  it('keeps whole characters, as many as fit, at either end', () => {
    fc.assert(
      fc.property(texts, fc.nat(200), (text, max) => {
        const ends = boundaries(text)
        const head = firstBytes(text, max)
        const tail = lastBytes(text, max)
        expect(text.startsWith(head)).toBe(true)
        expect(text.endsWith(tail)).toBe(true)
        expect(ends.has(head.length)).toBe(true)
        expect(ends.has(text.length - tail.length)).toBe(true)
        for (const part of [head, tail]) {
          const bytes = Buffer.byteLength(part)
          expect(bytes).toBeLessThanOrEqual(max)
          expect(bytes).toBeGreaterThan(Math.min(max, Buffer.byteLength(text)) - longest)
        }
        const units = firstOf(text, max)
        expect(units.length).toBeLessThanOrEqual(max)
        expect(text.startsWith(units)).toBe(true)
        expect(ends.has(units.length)).toBe(true)
      }),
    )
  })

  it('is cut in bytes as in text', () => {
    fc.assert(
      fc.property(texts, fc.nat(200), (text, max) => {
        const bytes = Buffer.from(text)
        expect(bytes.subarray(0, headLength(bytes, max)).toString()).toBe(firstBytes(text, max))
        expect(bytes.subarray(tailStart(bytes, max)).toString()).toBe(lastBytes(text, max))
      }),
    )
  })

  it('says that there was more, within its length', () => {
    fc.assert(
      fc.property(texts, fc.integer({ min: 1, max: 40 }), (text, max) => {
        const short = ellipsised(text, max)
        expect([...short].length).toBeLessThanOrEqual(max)
        if (short === text) return
        expect(short.endsWith('…')).toBe(true)
        expect(text.startsWith(short.slice(0, -1))).toBe(true)
        expect(boundaries(text).has(short.length - 1)).toBe(true)
      }),
    )
  })

  it('is cut after all where one character is longer than all that may be kept', () => {
    const zalgo = `z${'\u0301'.repeat(5000)}`
    expect(Buffer.byteLength(firstBytes(zalgo, 4000))).toBeGreaterThan(3990)
    expect(Buffer.byteLength(lastBytes(zalgo, 4000))).toBeGreaterThan(3990)
    expect(firstBytes(zalgo, 4000).isWellFormed()).toBe(true)
  })

  it('may be no text at all', () => {
    const bytes = Buffer.alloc(5000, 0xff)
    expect(headLength(bytes, 100)).toBeGreaterThanOrEqual(97)
    expect(tailStart(bytes, 100)).toBe(4900)
    const continued = Buffer.alloc(5000, 0x80)
    expect(headLength(continued, 100)).toBeGreaterThanOrEqual(97)
    expect(tailStart(continued, 100)).toBeLessThanOrEqual(4903)
  })
})
