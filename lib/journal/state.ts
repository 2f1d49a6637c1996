import type { Document } from '../session/document.ts'
import { agentRecordOf } from './agent/from-entry.ts'
import { isAgentFactType } from './agent/records.ts'
import { apply, skip } from './agent/reducer.ts'
import { AgentReplayError } from './agent/replay-error.ts'
import type { AgentState } from './agent/state.ts'
import type { Entry, Head } from './entry.ts'
import { foldEntry, ReplayError } from './fold.ts'

/** All that a journal comes to at one of its entries: the session's document, and the agent's state beside it. */
export type JournalState = {
  readonly head: Head
  readonly document: Document
  readonly agent: AgentState
  /** The sequence of the agent's last record; null while it has none beyond the session's creation. */
  readonly agent_sequence: number | null
}

/** Folds the next entry, whose data has to be in place, into the agent's state. Throws as `foldState` does. */
export const foldAgent = (agent: AgentState | null, entry: Entry): AgentState => {
  const record = agentRecordOf(entry)
  return record ? apply(agent, record) : skip(agent, entry)
}

/**
 * Folds the next entry, whose data has to be in place. Pure; the state given stays what it was. Throws ReplayError or
 * AgentReplayError for an entry that can't stand here.
 */
export const foldState = (state: JournalState | null, entry: Entry): JournalState => {
  const document = foldEntry(state?.document ?? null, entry)
  const agent = foldAgent(state?.agent ?? null, entry)
  if (!document)
    throw new ReplayError('invalid_creation', entry.sequence, 'a journal starts with session_created')
  const isOfAgent = entry.kind === 'record' && isAgentFactType(entry.type)
  return {
    head: { sequence: entry.sequence, hash: entry.hash },
    document,
    agent,
    agent_sequence: isOfAgent ? entry.sequence : (state?.agent_sequence ?? null),
  }
}

/** Whether an error says that a journal can't be replayed, and not that something else went wrong. */
export const isReplayError = (error: unknown): error is ReplayError | AgentReplayError =>
  error instanceof ReplayError || error instanceof AgentReplayError
