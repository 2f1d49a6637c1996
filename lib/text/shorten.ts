import { orphanedBytes, unfinishedBytes } from './utf8.ts'

const segmenter = new Intl.Segmenter('en', { granularity: 'grapheme' })

/** How far a cut is looked around, in bytes: a character that people see as one is shorter. */
const around = 1024

/**
 * How far the seam between two texts lies behind the beginning and before the end of the character, as people see it, that
 * it goes through; 0 and 0 where it goes through none.
 */
const seam = (left: string, right: string): { back: number; ahead: number } => {
  const found = left === '' ? undefined : segmenter.segment(left + right).containing(left.length)
  if (!found || found.index === left.length) return { back: 0, ahead: 0 }
  return { back: left.length - found.index, ahead: found.index + found.segment.length - left.length }
}

const bytesIn = (text: string): number | null => (text.includes('\uFFFD') ? null : Buffer.byteLength(text))

const decode = (bytes: Uint8Array): string => new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)

const sides = (bytes: Uint8Array, at: number): [left: string, right: string] => {
  const before = bytes.subarray(Math.max(0, at - around), at)
  const behind = bytes.subarray(at, at + around)
  return [
    decode(before.subarray(orphanedBytes(before))),
    decode(behind.subarray(0, behind.length - unfinishedBytes(behind))),
  ]
}

/**
 * How many of the first bytes of a text, at most `max`, end between two characters as people see them. What follows the cut
 * has to be in `bytes` for that, as far as it is known.
 */
export const headLength = (bytes: Uint8Array, max: number): number => {
  if (bytes.length <= max) return bytes.length
  if (max <= 0) return 0
  const at = max - unfinishedBytes(bytes.subarray(0, max))
  const [left, right] = sides(bytes, at)
  const { back } = seam(left, right)
  // A character that fills all that is looked at is cut after all.
  return back === left.length && at > around ? at : at - (bytesIn(left.slice(left.length - back)) ?? 0)
}

/** Where the last bytes of a text, at most `max`, begin between two characters. What precedes the cut has to be in `bytes`. */
export const tailStart = (bytes: Uint8Array, max: number): number => {
  if (bytes.length <= max) return 0
  if (max <= 0) return bytes.length
  const first = bytes.length - max
  const at = first + orphanedBytes(bytes.subarray(first))
  const [left, right] = sides(bytes, at)
  const { ahead } = seam(left, right)
  return ahead === right.length && at + around < bytes.length
    ? at
    : at + (bytesIn(right.slice(0, ahead)) ?? 0)
}

/** The longest beginning of a text that fits into some bytes of UTF-8, in whole characters. */
export const firstBytes = (text: string, max: number): string => {
  const bytes = Buffer.from(text)
  return bytes.length <= max ? text : bytes.subarray(0, headLength(bytes, max)).toString()
}

/** The longest end of a text that fits into some bytes of UTF-8, in whole characters. */
export const lastBytes = (text: string, max: number): string => {
  const bytes = Buffer.from(text)
  return bytes.length <= max ? text : bytes.subarray(tailStart(bytes, max)).toString()
}

/** The longest beginning of a text of at most `max` in the measure of `length`, in whole characters. */
export const firstOf = (text: string, max: number): string => {
  if (text.length <= max) return text
  const from = Math.max(0, max - around)
  const { back } = seam(text.slice(from, max), text.slice(max, max + around))
  return text.slice(0, max - back)
}

const codePoints = (text: string): number => [...text].length

/**
 * A text of at most `max` code points, or of what else `size` counts, the last one `…` where there was more; cut between
 * characters.
 */
export const ellipsised = (
  text: string,
  max: number,
  size: (text: string) => number = codePoints,
): string => {
  if (size(text) <= max) return text
  let end = 0
  let used = 0
  for (const { index, segment } of segmenter.segment(text)) {
    used += size(segment)
    if (used > max - 1) break
    end = index + segment.length
  }
  return `${text.slice(0, end).trimEnd()}…`
}
