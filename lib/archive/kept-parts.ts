import { hash } from 'node:crypto'
import { z } from 'zod'
import { digestIn } from '../artifact-name.ts'
import { isDataArtifact } from '../journal/data-ref.ts'
import type { DataRef, Entry } from '../journal/entry.ts'
import { filesNamedBy, type NamedFile, namedArtifact } from '../journal/named-files.ts'
import { reviewBodySchema } from '../session/protocol.ts'
import { ArchiveError } from './error.ts'
import type { ArchivePart } from './parts.ts'

type FilePart = Extract<ArchivePart, { kind: 'file' }>

const dataSchema = z.record(z.string(), z.unknown())

/** JSON of an archive. Throws ArchiveError. */
export const jsonOf = (text: string, what: string): unknown => {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new ArchiveError(`${what} is not JSON`, { cause })
  }
}

/** The patch that a review's body names; null for any other file. */
const patchIn = ({ name, body }: FilePart): string | null => {
  if (digestIn(name) === null || !name.endsWith('.json')) return null
  const review = reviewBodySchema.safeParse(jsonOf(body.toString(), name))
  return review.success ? review.data.patch_artifact : null
}

export type KeptParts = ReturnType<typeof createKeptParts>

/** The files of an archive, which stand before its journal, held against what the journal's entries say of them. */
export const createKeptParts = () => {
  const hashes = new Map<string, string>()
  const patches = new Map<string, string>()
  const data = new Map<string, Buffer>()

  const requireFile = ({ folder, name, sha256 }: NamedFile): void => {
    const found = hashes.get(`${folder}/${name}`)
    if (found === undefined) throw new ArchiveError(`${folder}/${name}, which an entry names, is missing`)
    if (found !== sha256) throw new ArchiveError(`${folder}/${name} is not what an entry names`)
  }

  return {
    /** Takes a file: its hash, and of its bytes no more than what entries refer to. */
    keep: (part: FilePart): void => {
      const { folder, name, sha256, body } = part
      hashes.set(`${folder}/${name}`, sha256)
      if (folder === 'bundles') return
      if ((digestIn(name) ?? sha256) !== sha256)
        throw new ArchiveError(`artifact ${name} is not what its name says`)
      const patch = patchIn(part)
      if (patch !== null) patches.set(name, patch)
      if (isDataArtifact(name)) data.set(name, body)
    },

    /** An entry's data. Throws ArchiveError. */
    dataOf: ({ artifact, bytes, sha256 }: DataRef): Entry['data'] => {
      const body = data.get(artifact)
      if (!body) throw new ArchiveError(`artifact ${artifact}, to which an entry refers, is missing`)
      if (body.length !== bytes || hash('sha256', body) !== sha256)
        throw new ArchiveError(`artifact ${artifact} is not what an entry refers to`)
      const read = dataSchema.safeParse(jsonOf(body.toString(), `artifact ${artifact}`))
      if (read.success) return read.data
      throw new ArchiveError(`artifact ${artifact} is not the data of an entry`)
    },

    /** Throws ArchiveError where a file that an entry, with its data in place, names is missing or another. */
    requireNamed: (entry: Entry): void => {
      for (const file of filesNamedBy(entry)) {
        requireFile(file)
        const patch = file.review && patches.get(file.name)
        if (file.review && patch === undefined) throw new ArchiveError(`artifact ${file.name} is no review`)
        if (patch) for (const named of namedArtifact(patch)) requireFile(named)
      }
    },
  }
}
