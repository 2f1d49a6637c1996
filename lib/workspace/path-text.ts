import { hasHidden } from '../text/visible.ts'

/**
 * The printable form of a path's bytes, lossless: valid UTF-8 stays as it is, a backslash is doubled, and each byte of a
 * hidden character (lib/text/visible.ts) or of invalid UTF-8 is written `\xHH`. Folder prefixes survive, so patterns match the printed form.
 */
export const showPath = (path: Uint8Array): string => {
  const plain = Buffer.from(path).toString('latin1')
  return /^[ -[\]-~]*$/.test(plain) ? plain : showOther(path)
}

const showOther = (path: Uint8Array): string => {
  let text = ''
  for (let at = 0; at < path.length; ) {
    const size = sequenceSize(path, at)
    const sequence = path.subarray(at, at + Math.max(size, 1))
    const plain = size === 0 ? '' : Buffer.from(sequence).toString('utf8')
    if (size === 0 || hasHidden(plain)) {
      for (const byte of sequence) text += `\\x${byte.toString(16).padStart(2, '0')}`
    } else {
      text += plain === '\\' ? '\\\\' : plain
    }
    at += sequence.length
  }
  return text
}

/** The bytes that `showPath` printed. */
export const readPath = (text: string): Buffer =>
  Buffer.concat(
    text
      .split(/(\\\\|\\x[0-9a-f]{2})/)
      .map((part, index) =>
        index % 2 === 0
          ? Buffer.from(part)
          : part === '\\\\'
            ? Buffer.from('\\')
            : Buffer.from(part.slice(2), 'hex'),
      ),
  )

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Length of the well-formed UTF-8 sequence that starts at `at`, 0 when there is none. */
const sequenceSize = (path: Uint8Array, at: number): number => {
  const lead = path[at] ?? 0
  const size = lead < 0x80 ? 1 : lead >= 0xc2 && lead < 0xe0 ? 2 : lead < 0xf0 && lead >= 0xe0 ? 3 : 4
  if (size === 1) return 1
  if (lead < 0xc2 || at + size > path.length) return 0
  try {
    decoder.decode(path.subarray(at, at + size))
    return size
  } catch {
    return 0
  }
}
