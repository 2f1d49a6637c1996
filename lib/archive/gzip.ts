import { Readable, type Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'

/**
 * Bytes through a transform, no faster than they are asked for, which the web's own compression streams don't keep to.
 * Whoever stops asking ends the source too.
 */
async function* through(
  chunks: AsyncIterable<Uint8Array>,
  transform: Transform,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  // An error of the source reaches the reader of the transform.
  pipeline(Readable.from(chunks, { objectMode: false }), transform).catch(() => {})
  for await (const chunk of transform) yield new Uint8Array(chunk)
}

export const gzipped = (chunks: AsyncIterable<Uint8Array>) => through(chunks, createGzip())
export const gunzipped = (chunks: AsyncIterable<Uint8Array>) => through(chunks, createGunzip())
