import { createHash } from 'node:crypto'
import { createTarDecoder, type ParsedTarEntry } from 'modern-tar'
import { canonical } from '../journal/entry.ts'
import { limits } from '../limits.ts'
import { ArchiveError } from './error.ts'
import { gunzipped } from './gzip.ts'
import { type Manifest, type ManifestFile, manifestPath, readManifest } from './manifest.ts'

/** A file of an archive as it is read. It has to be read to its end, where it is shown to be what the manifest says. */
export type UnpackedFile = ManifestFile & { content: AsyncIterable<Uint8Array> }

/** What an archive may hold, in bytes, as it comes and when it is unpacked. */
export type Bounds = { readonly bytes: number; readonly unpacked: number }

/** What went wrong first, wherever in the pipe; what follows from it further down only says that something broke. */
const createFailure = () => {
  let first: { error: unknown } | null = null
  return {
    note: (error: unknown): unknown => {
      first ??= { error }
      return error
    },
    explain: (error: unknown): unknown => {
      if (first) return first.error
      return error instanceof ArchiveError
        ? error
        : new ArchiveError('it is no whole gzipped tar file', { cause: error })
    },
  }
}
type Failure = ReturnType<typeof createFailure>

/** Passes on what is read, and refuses what is longer than it may be before it is all there. */
async function* atMost<Chunk extends Uint8Array>(
  most: number,
  what: string,
  chunks: AsyncIterable<Chunk>,
  failure: Failure,
): AsyncGenerator<Chunk> {
  let seen = 0
  for await (const chunk of chunks) {
    seen += chunk.length
    if (seen > most) throw failure.note(new ArchiveError(`${what} more than ${most} bytes`))
    yield chunk
  }
}

/** All bytes of a file that is small enough to be held. */
export const wholeOf = async (content: AsyncIterable<Uint8Array>): Promise<Buffer> => {
  const chunks: Uint8Array[] = []
  for await (const chunk of content) chunks.push(chunk)
  return Buffer.concat(chunks)
}

async function* proven(
  { path, bytes, sha256 }: ManifestFile,
  body: ReadableStream<Uint8Array>,
  failure: Failure,
): AsyncGenerator<Uint8Array> {
  const hash = createHash('sha256')
  let seen = 0
  try {
    for await (const chunk of body) {
      hash.update(chunk)
      seen += chunk.length
      yield chunk
    }
  } catch (error) {
    throw failure.explain(error)
  }
  if (seen !== bytes || hash.digest('hex') !== sha256)
    throw new ArchiveError(`${path} is not what the manifest says`)
}

const manifestIn = async ({ header, body }: ParsedTarEntry): Promise<Manifest> => {
  if (header.name !== manifestPath || header.type !== 'file')
    throw new ArchiveError(`it does not begin with ${manifestPath}`)
  if (header.size > limits.archive.manifest) throw new ArchiveError('its manifest is too large')
  const text = (await wholeOf(body)).toString()
  const manifest = readManifest(text)
  if (canonical(manifest) !== text) throw new ArchiveError('its manifest is not written canonically')
  return manifest
}

async function* filesIn(
  { files }: Manifest,
  entries: AsyncIterator<ParsedTarEntry>,
  failure: Failure,
): AsyncGenerator<UnpackedFile> {
  for (const file of files) {
    const { done, value } = await entries.next()
    if (done) throw new ArchiveError(`${file.path} is missing`)
    const { header, body } = value
    // The manifest's names are safe and stand once, so this also refuses a path that leads elsewhere, and a second file.
    if (header.name !== file.path || header.type !== 'file' || header.size !== file.bytes)
      throw new ArchiveError(`${file.path} of ${file.bytes} bytes should stand where something else does`)
    yield { ...file, content: proven(file, body, failure) }
  }
  const { done } = await entries.next()
  if (!done) throw new ArchiveError('it holds more than its manifest names')
}

async function* watched(source: ReadableStream<Uint8Array>, failure: Failure): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of source) yield chunk
  } catch (error) {
    throw failure.note(error)
  }
}

/**
 * Reads an archive as it comes: its manifest, then its files in order. Whatever is read was not seen by anybody before, so
 * nothing is believed: sizes are cut off while they are unpacked, and every name, size and hash is the manifest's. Throws
 * ArchiveError, in the middle too; what `source` itself throws is passed on.
 */
export async function* unpackArchive(
  source: ReadableStream<Uint8Array>,
  { bytes, unpacked }: Bounds,
): AsyncGenerator<{ manifest: Manifest } | { file: UnpackedFile }> {
  const failure = createFailure()
  const compressed = atMost(bytes, 'it holds', watched(source, failure), failure)
  const tar = atMost(unpacked, 'it unpacks to', gunzipped(compressed), failure)
  const entries = ReadableStream.from(tar)
    .pipeThrough(createTarDecoder({ strict: true }))
    [Symbol.asyncIterator]()
  try {
    const first = await entries.next()
    if (first.done) throw new ArchiveError('it is empty')
    const manifest = await manifestIn(first.value)
    yield { manifest }
    for await (const file of filesIn(manifest, entries, failure)) yield { file }
  } catch (error) {
    throw failure.explain(error)
  } finally {
    await entries.return?.().catch(() => {})
    await tar.return(undefined)
  }
}
