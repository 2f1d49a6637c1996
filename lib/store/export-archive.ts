import { createHash } from 'node:crypto'
import {
  documentPath,
  inOrder,
  journalPath,
  type Manifest,
  type ManifestFile,
  manifestSchema,
} from '../archive/manifest.ts'
import { type PackedFile, packArchive } from '../archive/pack.ts'
import { mostBytes } from '../archive/parts.ts'
import { GatehouseError } from '../errors.ts'
import { canonical } from '../journal/entry.ts'
import { limits } from '../limits.ts'
import type { SessionItem } from '../session/item.ts'
import { objectKey } from './keys.ts'
import type { Platform } from './platform.ts'
import { proveJournal } from './proof.ts'

type Parts = Pick<Platform, 'artifacts' | 'blobs' | 'journals' | 'payloads' | 'sessions'>
type Source = { path: string; content: () => AsyncIterable<Uint8Array> }

async function* objectBytes({ blobs }: Parts, key: string): AsyncGenerator<Uint8Array> {
  const stream = await blobs.stream(key)
  if (!stream) throw new GatehouseError('unavailable', 'an object of the session is gone')
  for await (const chunk of stream) yield chunk
}

/** The journal's lines up to the item's head, which is all that was decided when the export began. */
async function* journalBytes({ journals }: Parts, item: SessionItem): AsyncGenerator<Uint8Array> {
  let left = item.journal_head.sequence + 1
  for await (const lines of journals.segments(item)) {
    const taken = lines.slice(0, left)
    yield Buffer.from(taken.map((line) => `${line}\n`).join(''))
    left -= taken.length
    if (left === 0) return
  }
  throw new GatehouseError('journal_damaged', `the journal of ${item.id} ends before its head`)
}

async function* sourcesOf(parts: Parts, item: SessionItem): AsyncGenerator<Source> {
  const { team, id } = item
  const document = Buffer.from(canonical(item.document))
  yield {
    path: documentPath,
    content: async function* content() {
      yield document
    },
  }
  for (const [folder, prefix] of [
    ['artifacts', objectKey.artifactPrefix(team, id)],
    ['bundles', objectKey.bundlePrefix(team, id)],
  ] as const)
    for await (const key of parts.blobs.list(prefix))
      yield { path: `${folder}/${key.slice(prefix.length)}`, content: () => objectBytes(parts, key) }
  yield { path: journalPath, content: () => journalBytes(parts, item) }
}

const measured = async ({ path, content }: Source): Promise<ManifestFile> => {
  const hash = createHash('sha256')
  let bytes = 0
  for await (const chunk of content()) {
    hash.update(chunk)
    bytes += chunk.length
  }
  return { path, bytes, sha256: hash.digest('hex') }
}

/** Refuses, before anything is sent, what no import would take. */
const requireImportable = ({ entries, files }: Manifest): void => {
  const { archive } = limits
  const refuse = (what: string): never => {
    throw new GatehouseError('not_exportable', `an archive can’t hold ${what}`)
  }
  if (entries > archive.entries) refuse(`${entries} entries, only ${archive.entries}`)
  if (files.length > archive.files) refuse(`${files.length} files, only ${archive.files}`)
  for (const { path, bytes } of files) if (bytes > mostBytes(path)) refuse(`${path} of ${bytes} bytes`)
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
  if (bytes > archive.unpacked) refuse(`${bytes} bytes, only ${archive.unpacked}`)
}

/**
 * A session as one archive (spec/session-record.md B.7), as a stream; everything is read twice, once to say in front what
 * there is, and then to send it, and nothing is held whole. The item has to have nothing in its outbox. Throws
 * `not_exportable` for a session that is larger than an archive may be, `journal_damaged` for one that does not prove.
 */
export const exportArchive = async (
  parts: Parts,
  item: SessionItem,
): Promise<ReadableStream<Uint8Array<ArrayBuffer>>> => {
  const { problem } = await proveJournal(parts, item)
  if (problem)
    throw new GatehouseError('journal_damaged', `entry ${problem.sequence} of ${item.id}: ${problem.message}`)
  const found: (ManifestFile & PackedFile)[] = []
  for await (const source of sourcesOf(parts, item))
    found.push({ ...(await measured(source)), content: source.content })
  const files = inOrder(found)
  const manifest: Manifest = {
    ...{ format: 'gatehouse-session', format_version: 1, session_id: item.id, team: item.team },
    ...{ entries: item.journal_head.sequence + 1, head: item.journal_head },
    files: files.map(({ path, bytes, sha256 }) => ({ path, bytes, sha256 })),
  }
  requireImportable(manifest)
  return packArchive(manifestSchema.parse(manifest), files)
}
