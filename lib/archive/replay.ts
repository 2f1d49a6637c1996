import { hash } from 'node:crypto'
import { z } from 'zod'
import { isAgentFactType } from '../journal/agent/records.ts'
import { isDataArtifact } from '../journal/data-ref.ts'
import { type DataRef, type Entry, type Head, toLine } from '../journal/entry.ts'
import type { Segment } from '../journal/segments.ts'
import { createVerifier } from '../journal/verify.ts'
import { limits } from '../limits.ts'
import type { Document } from '../session/document.ts'
import { ArchiveError } from './error.ts'
import type { Manifest } from './manifest.ts'

/** What a journal comes to beside the document. */
export type Replayed = {
  readonly head: Head
  readonly agent_sequence: number | null
  /** How many records of the session's life there are: no fewer than there were writes that changed the document. */
  readonly lifecycle_records: number
}

const dataSchema = z.record(z.string(), z.unknown())

/** JSON of an archive. Throws ArchiveError. */
export const jsonOf = (text: string, what: string): unknown => {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new ArchiveError(`${what} is not JSON`, { cause })
  }
}

/** An entry's data, from the artifacts that stand before the journal. */
const dataOf = (artifacts: ReadonlyMap<string, Buffer>, { artifact, bytes, sha256 }: DataRef) => {
  const body = artifacts.get(artifact)
  if (!body) throw new ArchiveError(`artifact ${artifact}, to which an entry refers, is missing`)
  if (body.length !== bytes || hash('sha256', body) !== sha256)
    throw new ArchiveError(`artifact ${artifact} is not what an entry refers to`)
  const data = dataSchema.safeParse(jsonOf(body.toString(), `artifact ${artifact}`))
  if (data.success) return data.data
  throw new ArchiveError(`artifact ${artifact} is not the data of an entry`)
}

/** Replays an archive's journal line by line, with what its entries refer to. Throws ArchiveError at the first that fails. */
export const createReplay = ({ session_id, head, entries }: Manifest) => {
  const verifier = createVerifier(session_id)
  const artifacts = new Map<string, Buffer>()
  let agent_sequence: number | null = null
  let lifecycle_records = 0

  const requireWhole = (): void => {
    const problem = verifier.problem()
    if (problem) throw new ArchiveError(`its journal fails at entry ${problem.sequence}: ${problem.message}`)
  }

  const count = ({ kind, type, sequence }: Entry): void => {
    if (kind === 'event') return
    if (isAgentFactType(type)) agent_sequence = sequence
    else lifecycle_records++
  }

  const take = (line: string): void => {
    const entry = verifier.take(line)
    requireWhole()
    if (!entry) return
    if (toLine(entry) !== line) throw new ArchiveError(`entry ${entry.sequence} is not written canonically`)
    verifier.fold(entry.data_ref ? { ...entry, data: dataOf(artifacts, entry.data_ref) } : entry)
    requireWhole()
    count(entry)
  }

  return {
    /** Holds what entries may refer to; other artifacts need not be there again. */
    keep: (name: string, body: Buffer): void => {
      if (isDataArtifact(name)) artifacts.set(name, body)
    },

    take: ({ first, lines }: Segment): void => {
      if (first + lines.length > limits.archive.entries)
        throw new ArchiveError(`its journal has more than ${limits.archive.entries} entries`)
      for (const line of lines) take(line)
    },

    /** What all lines came to, which has to be the document. */
    end: (document: Document): Replayed => {
      verifier.end({ head, document, agent_sequence })
      requireWhole()
      if (head.sequence + 1 !== entries)
        throw new ArchiveError('its journal has another number of entries than its manifest says')
      return { head, agent_sequence, lifecycle_records }
    },
  }
}
