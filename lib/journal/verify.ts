import type { Document } from '../session/document.ts'
import { canonical, type Entry, emptyHead, type Head, hashOf } from './entry.ts'
import { foldEntry, ReplayError } from './fold.ts'

export type Verification = {
  ok: boolean
  entries: number
  head: Head
  /** The first thing that is wrong, and the sequence at which it is. */
  problem?: { sequence: number; message: string }
}

/**
 * Proves that a journal is unbroken and folds to the document that the session item holds (DESIGN 3, invariant 3).
 * Finds a changed, missing, reordered, doubled or inserted entry and names the first bad sequence.
 */
export const verifyJournal = (
  entries: readonly Entry[],
  expected: { head: Head; document: Document },
): Verification => {
  let head: Head = emptyHead
  let document: Document | null = null
  const bad = (sequence: number, message: string): Verification => ({
    ok: false,
    entries: entries.length,
    head,
    problem: { sequence, message },
  })
  for (const entry of entries) {
    const due = head.sequence + 1
    if (entry.sequence !== due)
      return bad(due, `entry ${due} is expected here, but ${entry.sequence} stands here`)
    if (entry.session_id !== expected.document.id) return bad(due, 'the entry belongs to another session')
    if (entry.previous_hash !== head.hash) return bad(due, 'the entry does not follow the one before it')
    if (entry.hash !== hashOf(entry)) return bad(due, 'the entry is not the one that was hashed')
    try {
      document = foldEntry(document, entry)
    } catch (error) {
      if (error instanceof ReplayError) return bad(due, error.message)
      throw error
    }
    head = { sequence: entry.sequence, hash: entry.hash }
  }
  if (head.sequence !== expected.head.sequence || head.hash !== expected.head.hash) {
    return bad(
      head.sequence + 1,
      `the session’s head is entry ${expected.head.sequence}, the journal ends at ${head.sequence}`,
    )
  }
  if (document === null || canonical(document) !== canonical(expected.document)) {
    return bad(head.sequence, 'the journal folds to another state than the session item holds')
  }
  return { ok: true, entries: entries.length, head }
}
