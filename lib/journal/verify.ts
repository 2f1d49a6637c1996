import type { Document } from '../session/document.ts'
import { canonical, type Entry, emptyHead, fromLine, type Head, isIntact, toLine } from './entry.ts'
import { foldState, isReplayError, type JournalState } from './state.ts'

/** The first thing that is wrong, and the sequence at which it is. */
export type Problem = { sequence: number; message: string }
export type Verification = { ok: boolean; entries: number; head: Head; problem?: Problem }

/** What a journal has to come to: the session item's word. */
export type Expected = { head: Head; document: Document; agent_sequence: number | null }

export type Verifier = ReturnType<typeof createVerifier>

const read = (line: string): Entry | null => {
  try {
    return fromLine(line)
  } catch {
    return null
  }
}

/**
 * Proves a session's journal line by line, holding no more of it than what it folds to: that it is unbroken (a changed,
 * missing, reordered, doubled or inserted entry is found, and the first bad sequence named), that it replays, and that it
 * comes to what the session item holds (DESIGN 3, invariant 3).
 */
export const createVerifier = (sessionId: string) => {
  let state: JournalState | null = null
  let problem: Problem | null = null
  const reached = (): Head => state?.head ?? emptyHead

  const fail = (sequence: number, message: string): null => {
    problem ??= { sequence, message }
    return null
  }

  const misplaced = (line: string, entry: Entry): string | null => {
    const head = reached()
    const due = head.sequence + 1
    if (entry.sequence !== due) return `entry ${due} is expected here, but ${entry.sequence} stands here`
    if (entry.session_id !== sessionId) return 'the entry belongs to another session'
    if (entry.previous_hash !== head.hash) return 'the entry does not follow the one before it'
    return isIntact(line, entry) ? null : 'the entry is not the one that was hashed'
  }

  const finding = (): Verification => ({
    ok: problem === null,
    entries: reached().sequence + 1,
    head: reached(),
    ...(problem === null ? {} : { problem }),
  })

  return {
    /** The last entry that was found right. */
    head: reached,
    /** What the entries up to there come to; null before the first. */
    state: (): JournalState | null => state,
    isBroken: (): boolean => problem !== null,
    /** The first thing that was found wrong so far. */
    problem: (): Problem | null => problem,

    /**
     * Checks the next line's place and bytes. The entry, which has to be folded next; null when something is wrong with
     * it or was with one before.
     */
    take: (line: string): Entry | null => {
      if (problem) return null
      const due = reached().sequence + 1
      const entry = read(line)
      if (!entry) return fail(due, 'the line is no entry')
      const wrong = misplaced(line, entry)
      return wrong === null ? entry : fail(due, wrong)
    },

    /** Folds the entry that was taken, with its data in place where the entry only refers to it. */
    fold: (entry: Entry): void => {
      try {
        state = foldState(state, entry)
      } catch (error) {
        if (!isReplayError(error)) throw error
        fail(entry.sequence, error.message)
      }
    },

    /** Something is wrong with what comes next that is not in its lines. */
    fail: (message: string): void => void fail(reached().sequence + 1, message),

    /** The finding, once every line was taken that the session's item knows of. */
    end: (expected: Expected): Verification => {
      if (problem) return finding()
      const head = reached()
      if (head.sequence !== expected.head.sequence || head.hash !== expected.head.hash)
        fail(
          head.sequence + 1,
          `the session’s head is entry ${expected.head.sequence}, the journal ends at ${head.sequence}`,
        )
      else if (state === null || canonical(state.document) !== canonical(expected.document))
        fail(head.sequence, 'the journal folds to another state than the session item holds')
      else if (state.agent_sequence !== expected.agent_sequence)
        fail(head.sequence, 'the session item names another record as the agent’s last')
      return finding()
    },
  }
}

/** Proves entries that are at hand, with their data in place. */
export const verifyJournal = (
  entries: readonly Entry[],
  expected: Omit<Expected, 'agent_sequence'> & { agent_sequence?: number | null },
): Verification => {
  const verifier = createVerifier(expected.document.id)
  for (const entry of entries) {
    const taken = verifier.take(toLine(entry))
    if (!taken) break
    verifier.fold(taken)
  }
  return { ...verifier.end({ agent_sequence: null, ...expected }), entries: entries.length }
}
