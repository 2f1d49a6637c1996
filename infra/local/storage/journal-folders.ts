import { readdir, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { fromLine, type Head } from '../../../lib/journal/entry.ts'
import { linesOf } from '../../../lib/journal/lines.ts'

/** What the bucket's folders hold of one session's journal. */
export type KeptJournal = {
  team: string
  id: string
  /** Where its first segment begins; null without segments. */
  first: number | null
  /** The last sequence that is there in segments, and its hash, null where the last segment can't be read; -1 without any. */
  last: { sequence: number; hash: string | null }
  /** Sealed journals, by their hashes. */
  sealed: string[]
}

/** How the S3 server calls the file that holds an object's bytes. */
const objectSuffix = '._S3rver_object'

const names = (folder: string): Promise<string[]> =>
  readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return []
    throw error
  })

/** The objects of a folder that end in this way, without that end, in their order. */
const objectsIn = async (folder: string, end: string): Promise<string[]> =>
  (await names(folder))
    .filter((name) => name.endsWith(`${end}${objectSuffix}`))
    .map((name) => basename(name, `${end}${objectSuffix}`))
    .sort()

const lastEntry = (first: number, bytes: Buffer): KeptJournal['last'] => {
  const lines = linesOf(bytes)
  const sequence = first + Math.max(0, (lines?.length ?? 1) - 1)
  try {
    const head: Head = fromLine(lines?.at(-1) ?? '')
    return { sequence, hash: head.sequence === sequence ? head.hash : null }
  } catch {
    return { sequence, hash: null }
  }
}

const journalIn = async (team: string, id: string, folder: string): Promise<KeptJournal> => {
  const [segments, sealed] = await Promise.all([
    objectsIn(join(folder, 'journal'), '.jsonl'),
    objectsIn(join(folder, 'sealed'), '.jsonl.zst'),
  ])
  const latest = segments.at(-1)
  if (latest === undefined) return { team, id, first: null, last: { sequence: -1, hash: null }, sealed }
  const bytes = await readFile(join(folder, 'journal', `${latest}.jsonl${objectSuffix}`))
  return { team, id, sealed, first: Number(segments[0]), last: lastEntry(Number(latest), bytes) }
}

/** Every session of which a journal is in the bucket's folder. Of each, names are read and no more than one segment. */
export async function* keptJournals(bucket: string): AsyncGenerator<KeptJournal> {
  const teams = join(bucket, 'teams')
  for (const team of await names(teams)) {
    const sessions = join(teams, team, 'sessions')
    for (const id of await names(sessions)) {
      const kept = await journalIn(team, id, join(sessions, id))
      if (kept.first !== null || kept.sealed.length > 0) yield kept
    }
  }
}
