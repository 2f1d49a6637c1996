import { GatehouseError, isError } from '../errors.ts'
import type { AgentFact } from '../journal/agent/records.ts'
import { type AgentState, activeView, materialise } from '../journal/agent/state.ts'
import { laneAt } from '../journal/agent/store.ts'
import type { Actor } from '../journal/entry.ts'
import { place } from './agent-append.ts'
import type { Change, SessionItem } from './item.ts'
import { isTerminal } from './states.ts'

/** Branches change while nobody adds to them (spec/session-record.md B.10): the session goes on, and no engine runs. */
const requireQuiet = ({ document, runtime }: SessionItem): void => {
  if (isTerminal(document.state))
    throw new GatehouseError('already_decided', `session ${document.id} has ended`)
  if (document.step === 'Code' && runtime.command !== null)
    throw new GatehouseError('illegal_transition', 'an engine is at work on the active branch')
}

/** Facts of branches by a person. What the reducer refuses is a conflict with what is true now, told by its reason. */
const change = (agent: AgentState, actor: Actor, facts: readonly AgentFact[], time: string): Change => {
  try {
    const given = facts.map((fact) => ({ fact, context: {} }))
    return { actor, facts: place(agent, given, time).statements }
  } catch (error) {
    if (!isError(error, 'record_refused')) throw error
    const [reason] = error.errors ?? []
    throw new GatehouseError('illegal_transition', `the branches can’t be so: ${reason?.message}`, {
      cause: error,
    })
  }
}

/** The branch in whose own history a record stands; undefined for what is no record of the agent. */
const branchOf = ({ store, tail_sequence }: AgentState, recordId: string): string | null | undefined => {
  const sequence = store.records.get(recordId) ?? Infinity
  const lane = sequence > tail_sequence ? undefined : store.places.at(sequence)
  return lane === undefined ? undefined : laneAt(store, lane).branch
}

const isThere = ({ store, tail_sequence }: AgentState, branch: string): boolean => {
  const lane = store.laneOf.get(branch)
  return lane !== undefined && laneAt(store, lane).created <= tail_sequence
}

/**
 * Makes a branch that goes on from a record, and activates it: both or neither. Null where a repeat finds it made. Throws
 * `invalid_request` for a record that is not there, `illegal_transition` with the reducer's reason where it is not safe
 * to fork, where there are no branches, or while an engine runs.
 */
export const fork = (
  item: SessionItem,
  agent: AgentState,
  { branch, from, time }: { branch: string; from: string; time: string },
  actor: Actor,
): Change | null => {
  if (isThere(agent, branch)) return null
  requireQuiet(item)
  const source = branchOf(agent, from)
  if (source === undefined) {
    const message = `session ${item.id} has no record ${from} of the agent`
    throw new GatehouseError('invalid_request', message, { errors: [{ path: 'from_record_id', message }] })
  }
  if (source === null)
    throw new GatehouseError('illegal_transition', 'the session’s records have no branches')
  const data = { source_branch_id: source, branch_id: branch, from_record_id: from }
  const facts: AgentFact[] = [
    { type: 'branch_created', data },
    { type: 'active_branch_changed', data: { branch_id: branch } },
  ]
  return change(agent, actor, facts, time)
}

/** Goes on with a branch that is there. Null where it is the active one; throws `not_found` for an unknown one. */
export const activate = (
  item: SessionItem,
  agent: AgentState,
  { branch, time }: { branch: string; time: string },
  actor: Actor,
): Change | null => {
  if (!isThere(agent, branch))
    throw new GatehouseError('not_found', `session ${item.id} has no branch ${branch}`)
  requireQuiet(item)
  if (laneAt(agent.store, activeView(agent).lane).branch === branch) return null
  return change(agent, actor, [{ type: 'active_branch_changed', data: { branch_id: branch } }], time)
}

/** All branches in the order in which they were made. */
export const branchList = (agent: AgentState) => {
  const { branches, active_branch_id } = materialise(agent)
  return Object.values(branches).map((branch) => ({
    ...branch,
    active: branch.branch_id === active_branch_id,
  }))
}
