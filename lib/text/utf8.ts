const replacement = '\uFFFD'

/** Output bytes as text that any JSON store takes: invalid UTF-8 and NUL each become U+FFFD. */
export const printable = (bytes: Uint8Array): string => withoutNul(new TextDecoder().decode(bytes))

/** Text with every NUL replaced by U+FFFD. */
export const withoutNul = (text: string): string => text.replaceAll('\0', replacement)

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80

const sequenceLength = (lead: number): number => (lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1)

/** How many bytes at the end of `bytes` are a UTF-8 sequence that was cut short: 0 to 3. */
export const unfinishedBytes = (bytes: Uint8Array): number => {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back]
    if (byte === undefined) return 0
    if (isContinuation(byte)) continue
    return sequenceLength(byte) > back ? back : 0
  }
  return 0
}

/** How many bytes at the start of `bytes` belong to a UTF-8 sequence that began before it: 0 to 3. */
export const orphanedBytes = (bytes: Uint8Array): number => {
  let count = 0
  while (count < 3 && isContinuation(bytes[count])) count += 1
  return count
}
