/** The longest beginning of a text that fits into some UTF-8 bytes, cut between characters. */
export const clip = (text: string, bytes: number): string => {
  if (bytes <= 0) return ''
  const buffer = Buffer.from(text)
  if (buffer.length <= bytes) return text
  let end = bytes
  while (end > 0 && ((buffer[end] ?? 0) & 0xc0) === 0x80) end--
  return buffer.subarray(0, end).toString()
}
