import { Readable } from 'node:stream'

/**
 * The payload inside an `aws-chunked` request body (`<hex size>[;extensions]\r\n<bytes>\r\n … 0\r\n<trailers>`), as
 * SDKs send a stream whose length or checksum they learn only at its end. The stream fails when the body is cut short.
 */
export const decodeChunks = (body: AsyncIterable<Buffer>): Readable => Readable.from(payload(body))

async function* payload(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let pending: Buffer = Buffer.alloc(0)
  let remaining = 0
  let ended = false
  for await (const received of body) {
    if (ended) continue
    pending = Buffer.concat([pending, received])
    while (!ended) {
      if (remaining > 0) {
        if (pending.length === 0) break
        const part = pending.subarray(0, remaining)
        pending = pending.subarray(part.length)
        remaining -= part.length
        yield part
        continue
      }
      if (pending.subarray(0, 2).equals(lineEnd)) pending = pending.subarray(2)
      const end = pending.indexOf(lineEnd)
      if (end < 0) break
      const size = Number.parseInt(pending.subarray(0, end).toString('latin1'), 16)
      if (Number.isNaN(size)) throw new Error('the aws-chunked body has a chunk without a size')
      pending = pending.subarray(end + 2)
      remaining = size
      ended = size === 0
    }
  }
  if (!ended) throw new Error('the aws-chunked body ended before its last chunk')
}

const lineEnd = Buffer.from('\r\n')
