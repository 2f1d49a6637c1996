import { activeBranchChanged, branchCreated, isAliasOfMain } from './branches.ts'
import type { AgentRecord } from './envelope.ts'
import { approvalExpired, approvalRequested, approvalResolved } from './reduce-approvals.ts'
import { messageCommitted, sessionCompacted } from './reduce-messages.ts'
import { configurationChanged, runCancelled, runInterrupted, turnCheckpointed } from './reduce-runs.ts'
import {
  policyDecisionRecorded,
  toolCallRequested,
  toolCallResolved,
  toolExecutionFinished,
  toolExecutionInterrupted,
  toolExecutionStarted,
} from './reduce-tools.ts'
import { AgentReplayError, invalidReference, refuse } from './replay-error.ts'
import { restore, serialise } from './serialise.ts'
import { type AgentState, activeView } from './state.ts'
import { addLane, emptyLane, emptyStore, laneAt, place, type Store } from './store.ts'
import { isUsed, type View } from './view.ts'
import type { Write } from './write.ts'

const create = (record: AgentRecord): AgentState => {
  const { sequence, id, session_id, branch } = record
  if (sequence !== 0) refuse({ kind: 'SequenceMismatch', expected: 0, actual: sequence })
  if (record.type !== 'session_created' || isAliasOfMain(branch, session_id))
    return refuse({ kind: 'InvalidCreation' })
  const { profile_id, metadata = {} } = record.data
  const store = emptyStore()
  const lane = emptyLane({ branch, source: null, from: id, parent: null, cut: -1, created: 0 })
  lane.configurations.push(0, { model: null, profile_id, reasoning_effort: null })
  const root = addLane(store, lane)
  store.active.push(0, root)
  place(store, 0, id, root)
  store.end = 0
  return { session_id, tail_sequence: 0, tail_record_id: id, metadata, store }
}

const requireNext = (
  { session_id, tail_sequence: tail }: AgentState,
  next: { session_id: string; sequence: number },
): void => {
  if (next.session_id !== session_id)
    refuse({ kind: 'SessionMismatch', expected: session_id, actual: next.session_id })
  if (tail >= Number.MAX_SAFE_INTEGER) refuse({ kind: 'SequenceOverflow' })
  if (next.sequence !== tail + 1)
    refuse({ kind: 'SequenceMismatch', expected: tail + 1, actual: next.sequence })
}

/** The type's own rule: what the record adds, or the reason why it can't stand here. */
const writeOf = (view: View, record: Exclude<AgentRecord, { type: 'session_created' }>): Write => {
  switch (record.type) {
    case 'message_committed':
      return messageCommitted(view, record)
    case 'configuration_changed':
      return configurationChanged(view, record)
    case 'tool_call_requested':
      return toolCallRequested(view, record)
    case 'policy_decision_recorded':
      return policyDecisionRecorded(view, record)
    case 'approval_requested':
      return approvalRequested(view, record)
    case 'approval_resolved':
      return approvalResolved(view, record)
    case 'approval_expired':
      return approvalExpired(view, record)
    case 'tool_execution_started':
      return toolExecutionStarted(view, record)
    case 'tool_execution_finished':
      return toolExecutionFinished(view, record)
    case 'tool_execution_interrupted':
      return toolExecutionInterrupted(view, record)
    case 'tool_call_resolved':
      return toolCallResolved(view, record)
    case 'run_interrupted':
      return runInterrupted(view, record)
    case 'run_cancelled':
      return runCancelled(view, record)
    case 'turn_checkpointed':
      return turnCheckpointed(view, record)
    case 'session_compacted':
      return sessionCompacted(view, record)
    case 'branch_created':
      return branchCreated(view, record)
    case 'active_branch_changed':
      return activeBranchChanged(view, record)
  }
}

const isOfBranches = ({ type }: AgentRecord): boolean =>
  type === 'branch_created' || type === 'active_branch_changed'

/** The store that this state may add to: its own where nothing follows it yet, and else a copy that ends with it. */
const writableBy = (state: AgentState): Store =>
  state.store.end === state.tail_sequence ? state.store : restore(serialise(state)).store

/**
 * Applies one record (spec/session-record.md B.6, in its order of checks). Pure: the state given stays what it was, and
 * a refused record leaves nothing behind, since every check comes before the first write. Costs what the record adds;
 * going on from a state that another record already followed copies that state once. Throws AgentReplayError.
 */
export const apply = (state: AgentState | null, record: AgentRecord): AgentState => {
  if (state === null) return create(record)
  const { sequence, id } = record
  if (isUsed(state.store.records, id, state.tail_sequence)) refuse({ kind: 'DuplicateRecord', record_id: id })
  requireNext(state, record)
  if (record.type === 'session_created') return refuse({ kind: 'InvalidCreation' })
  const view = activeView(state)
  if (!isOfBranches(record) && record.branch !== laneAt(state.store, view.lane).branch)
    invalidReference('inactive_branch')
  const write = writeOf(view, record)
  const store = writableBy(state)
  place(store, sequence, id, write(store))
  store.end = sequence
  return { ...state, tail_sequence: sequence, tail_record_id: id, store }
}

/** The state as of a later sequence, up to which there is no further record of the agent. */
export const passOver = (state: AgentState, sequence: number): AgentState => {
  const store = writableBy(state)
  store.end = sequence
  return { ...state, tail_sequence: sequence, store }
}

/**
 * Passes over an entry of the same journal that is no record of the agent: it takes a sequence and changes nothing else.
 * Throws AgentReplayError where it is out of place.
 */
export const skip = (
  state: AgentState | null,
  entry: { session_id: string; sequence: number },
): AgentState => {
  if (state === null) return refuse({ kind: 'InvalidCreation' })
  requireNext(state, entry)
  return passOver(state, entry.sequence)
}

/** The state that a whole log comes to. Throws AgentReplayError at the first record that can't follow. */
export const replay = (records: Iterable<AgentRecord>): AgentState => {
  let state: AgentState | null = null
  for (const record of records) state = apply(state, record)
  if (state === null) throw new AgentReplayError({ kind: 'EmptyLog' })
  return state
}
