import { isError } from '../errors.ts'
import { createVerifier, type Verification, type Verifier } from '../journal/verify.ts'
import type { SessionItem } from '../session/item.ts'
import { proveFiles } from './kept-files.ts'
import type { Platform } from './platform.ts'

type Id = { team: string; id: string }
type Parts = Pick<Platform, 'sessions' | 'journals' | 'payloads' | 'artifacts' | 'blobs'>

/** Takes one line, with the files that it speaks of; false when the item's head was reached before, so that this one lies behind it. */
const take = async (parts: Parts, verifier: Verifier, item: SessionItem, line: string): Promise<boolean> => {
  if (verifier.head().sequence >= item.journal_head.sequence) return false
  const entry = verifier.take(line)
  if (!entry) return true
  try {
    const resolved = await parts.payloads.resolve(item, entry)
    await proveFiles(parts, item, resolved)
    verifier.fold(resolved)
  } catch (error) {
    if (!isError(error, 'journal_damaged')) throw error
    verifier.fail(error.message)
  }
  return true
}

/** Takes what the bucket holds, up to the item's head; whether there is more behind it. */
const takeStored = async (parts: Parts, verifier: Verifier, item: SessionItem): Promise<boolean> => {
  try {
    for await (const lines of parts.journals.segments(item))
      for (const line of lines) {
        if (!(await take(parts, verifier, item, line))) return true
        if (verifier.isBroken()) return false
      }
  } catch (error) {
    // A segment that can't even be read is a finding like any other.
    if (!isError(error, 'journal_damaged')) throw error
    verifier.fail(error.message)
  }
  return false
}

/**
 * Proves a session's journal up to its head, also while others write to it. Throws `not_found` for a session that is not
 * there.
 */
export const proveJournal = async (parts: Parts, id: Id): Promise<Verification> => {
  const item = await parts.sessions.require(id)
  const verifier = createVerifier(item.id)
  const isAhead = await takeStored(parts, verifier, item)
  // What was decided and is still to reach the bucket.
  for (const { sequence, line } of item.outbox)
    if (sequence > verifier.head().sequence && !verifier.isBroken()) await take(parts, verifier, item, line)
  if (isAhead) {
    // With nothing written since, nobody decided what lies behind the head.
    const { revision } = await parts.sessions.require(id)
    if (revision === item.revision) verifier.fail('nobody decided the entry that stands behind the head')
  }
  const { journal_head: head, document, agent_sequence } = item
  return verifier.end({ head, document, agent_sequence })
}
