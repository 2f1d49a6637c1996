import { hash } from 'node:crypto'
import { canonical, sha256 } from '../journal/entry.ts'
import { segmentText } from '../journal/segments.ts'
import { limits } from '../limits.ts'
import { type Document, documentSchema } from '../session/document.ts'
import { isTerminal } from '../session/states.ts'
import { ArchiveError } from './error.ts'
import { createKeptParts, jsonOf } from './kept-parts.ts'
import type { Manifest } from './manifest.ts'
import { type ArchivePart, partsOf } from './parts.ts'
import { createReplay, type Replayed } from './replay.ts'
import type { Bounds } from './unpack.ts'

/** What a whole archive was found to be. */
export type Checked = Replayed & {
  readonly document: Document
  /** Whatever is to be written, by its name among the archive's parts, with the SHA-256 of its bytes in hex. */
  readonly written: ReadonlyMap<string, string>
  /** Names all that is to be written: only the same archive has the same. */
  readonly fingerprint: string
}

/** Under what name a part is among what is to be written, and the SHA-256 of its bytes in hex; null for what is not. */
export const writtenAs = (part: ArchivePart): { name: string; sha256: string } | null => {
  if (part.kind === 'file') return { name: `${part.folder}/${part.name}`, sha256: part.sha256 }
  if (part.kind !== 'segment') return null
  return { name: `journal/${part.segment.first}`, sha256: hash('sha256', segmentText(part.segment)) }
}

const readDocument = (text: string): Document => {
  const document = documentSchema.safeParse(jsonOf(text, 'its document'))
  if (document.success) return document.data
  const [issue] = document.error.issues
  throw new ArchiveError(`its document is not valid, ${issue?.path.join('.')}: ${issue?.message}`)
}

/** Only a session that is over, with nothing left running, is whole in its journal. */
const requireFinished = ({ state, execution_stopped }: Document): void => {
  if (!isTerminal(state) || !execution_stopped)
    throw new ArchiveError('its session had not ended: only a finished session can be imported')
}

/** One that was saved before hashes were recorded has at least to be there. */
const requireBundle = ({ checkpoint }: Document, written: ReadonlyMap<string, string>): void => {
  if (checkpoint?.bundle != null && !written.has(`bundles/${checkpoint.bundle}`))
    throw new ArchiveError('the bundle of its last checkpoint is missing')
}

/** Looks at each part when it comes; what they come to is told at the end. */
const createCheck = (manifest: Manifest, team: string) => {
  if (manifest.team !== team) throw new ArchiveError(`its session is of another team, ${manifest.team}`)
  const kept = createKeptParts()
  const replay = createReplay(manifest, kept)
  const written = new Map<string, string>()
  let document: Document | null = null

  return {
    take: (part: ArchivePart): void => {
      const object = writtenAs(part)
      if (object) written.set(object.name, object.sha256)
      if (part.kind === 'document') document = readDocument(part.text)
      else if (part.kind === 'segment') replay.take(part.segment)
      else if (part.kind === 'file') kept.keep(part)
    },

    end: (): Checked => {
      if (document?.id !== manifest.session_id || document.team !== team)
        throw new ArchiveError('its document is of another session than its manifest')
      const replayed = replay.end(document)
      requireFinished(document)
      requireBundle(document, written)
      const fingerprint = sha256(canonical([manifest.session_id, ...written]))
      return { ...replayed, document, written, fingerprint }
    },
  }
}

/**
 * Reads a whole archive and replays what is in it, before anything is made of it (spec/session-record.md B.7): the
 * manifest's names, sizes and hashes, every entry's bytes and place, the fold of document and agent, what entries and
 * checkpoint refer to. Throws ArchiveError for one that is not, in all of that, a finished session of the team.
 */
export const checkArchive = async (
  source: ReadableStream<Uint8Array>,
  team: string,
  bounds: Bounds = limits.archive,
): Promise<Checked> => {
  let check: ReturnType<typeof createCheck> | null = null
  for await (const part of partsOf(source, bounds))
    if (part.kind === 'manifest') check = createCheck(part.manifest, team)
    else check?.take(part)
  if (!check) throw new ArchiveError('it is empty')
  return check.end()
}
