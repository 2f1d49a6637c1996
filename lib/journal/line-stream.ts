/**
 * The lines of a text that comes in pieces, without their newlines; what stands behind the last newline is a line too,
 * unless it is empty. Throws TypeError for bytes that are no UTF-8.
 */
export async function* linesIn(content: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  let open: string[] = []
  for await (const chunk of content) {
    const [first = '', ...others] = decoder.decode(chunk, { stream: true }).split('\n')
    open.push(first)
    for (const next of others) {
      yield open.join('')
      open = [next]
    }
  }
  const last = open.join('') + decoder.decode()
  if (last !== '') yield last
}
