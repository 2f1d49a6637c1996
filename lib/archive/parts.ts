import { linesIn } from '../journal/line-stream.ts'
import { type Segment, segmentsOf } from '../journal/segments.ts'
import { limits } from '../limits.ts'
import { ArchiveError } from './error.ts'
import { documentPath, journalPath, type Manifest } from './manifest.ts'
import { type Bounds, unpackArchive, wholeOf } from './unpack.ts'

/** What an archive comes to, piece by piece: no more of it is held at once. */
export type ArchivePart =
  | { kind: 'manifest'; manifest: Manifest }
  | { kind: 'document'; text: string }
  | { kind: 'file'; folder: 'artifacts' | 'bundles'; name: string; sha256: string; body: Buffer }
  | { kind: 'segment'; segment: Segment }

async function* journalIn(content: AsyncIterable<Uint8Array>): AsyncGenerator<Segment> {
  try {
    yield* segmentsOf(linesIn(content))
  } catch (error) {
    throw error instanceof TypeError ? new ArchiveError('its journal is not UTF-8', { cause: error }) : error
  }
}

/** What a file may hold: all but the journal are held whole for a moment. */
export const mostBytes = (path: string): number => {
  if (path === journalPath) return limits.archive.unpacked
  return path === documentPath ? limits.archive.document : limits.archive.file
}

/** Reads an archive in its order: manifest, document, artifacts and bundles, and last the journal. Throws ArchiveError. */
export async function* partsOf(
  source: ReadableStream<Uint8Array>,
  bounds: Bounds = limits.archive,
): AsyncGenerator<ArchivePart> {
  for await (const read of unpackArchive(source, bounds)) {
    if ('manifest' in read) {
      yield { kind: 'manifest', manifest: read.manifest }
      continue
    }
    const { path, bytes, sha256, content } = read.file
    const most = mostBytes(path)
    if (bytes > most) throw new ArchiveError(`${path} is larger than ${most} bytes`)
    if (path === documentPath) yield { kind: 'document', text: (await wholeOf(content)).toString() }
    else if (path === journalPath)
      for await (const segment of journalIn(content)) yield { kind: 'segment', segment }
    else {
      const [folder, name = ''] = path.split('/')
      const body = await wholeOf(content)
      yield { kind: 'file', folder: folder === 'bundles' ? 'bundles' : 'artifacts', name, sha256, body }
    }
  }
}
