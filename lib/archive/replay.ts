import { isAgentFactType } from '../journal/agent/records.ts'
import { type Entry, type Head, toLine } from '../journal/entry.ts'
import type { Segment } from '../journal/segments.ts'
import { createVerifier } from '../journal/verify.ts'
import { limits } from '../limits.ts'
import type { Document } from '../session/document.ts'
import { ArchiveError } from './error.ts'
import type { KeptParts } from './kept-parts.ts'
import type { Manifest } from './manifest.ts'

/** What a journal comes to beside the document. */
export type Replayed = {
  readonly head: Head
  readonly agent_sequence: number | null
  /** How many records of the session's life there are: no fewer than there were writes that changed the document. */
  readonly lifecycle_records: number
}

/** Replays an archive's journal line by line, with the files that its entries name. Throws ArchiveError at the first that fails. */
export const createReplay = ({ session_id, head, entries }: Manifest, kept: KeptParts) => {
  const verifier = createVerifier(session_id)
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
    const resolved = entry.data_ref ? { ...entry, data: kept.dataOf(entry.data_ref) } : entry
    kept.requireNamed(resolved)
    verifier.fold(resolved)
    requireWhole()
    count(entry)
  }

  return {
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
