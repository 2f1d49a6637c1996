import type { JsonObject } from './json.ts'
import type { BranchSummary, Materialised, Projection } from './projection.ts'
import { type Lane, laneAt, type Store } from './store.ts'
import { contextOf, piecesOf, transcriptOf, type View } from './view.ts'

/**
 * What the records up to a tail come to. A value that never changes; applying a record gives another. States that follow
 * each other share one store and read it up to their own tails, so that a record costs what it adds.
 */
export type AgentState = {
  readonly session_id: string
  readonly tail_sequence: number
  readonly tail_record_id: string
  readonly metadata: JsonObject
  readonly store: Store
}

/** The branch that new records belong to. */
export const activeView = ({ store, tail_sequence: at }: AgentState): View => ({
  store,
  lane: store.active.at(at) ?? 0,
  at,
})

/** What every piece of a history holds under each key; the branch's own word goes before its parent's. */
const gather = <Value>(view: View, of: (lane: Lane, at: number) => Iterable<[string, Value]>) => {
  const found = new Map<string, Value>()
  for (const { lane, at } of [...piecesOf(view)].reverse())
    for (const [key, value] of of(lane, at)) found.set(key, value)
  return Object.fromEntries(found)
}

/** A branch's projection at a place in its history, as plain data that shares nothing but the messages themselves. */
export const project = (view: View): Projection => {
  const lane = laneAt(view.store, view.lane)
  const configuration = lane.configurations.at(view.at)
  if (!configuration) throw new RangeError('a branch has a configuration from its first record on')
  const approvals = [...lane.approvals.at(view.at)].flatMap(([id, approval]) =>
    approval === 'closed' ? [] : [[id, approval] as const],
  )
  return {
    configuration,
    messages: transcriptOf(view),
    pending_approvals: Object.fromEntries(approvals),
    tool_calls: gather(view, ({ calls }, at) => calls.at(at)),
    run_recovery: gather(view, ({ runs }, at) => runs.at(at)),
    latest_checkpoint: lane.checkpoints.at(view.at) ?? null,
    latest_compaction: contextOf(view).latest,
  }
}

/** The last record of every branch's own history, by lane. */
const leaves = ({ store, tail_sequence }: AgentState): Map<number, string> => {
  const found = new Map<number, string>()
  let upTo = tail_sequence
  for (const [from, lane] of [...store.places.between(-1, tail_sequence)].reverse()) {
    const leaf = store.records.at(upTo)
    if (!found.has(lane) && leaf !== undefined) found.set(lane, leaf)
    upTo = from - 1
  }
  return found
}

const branchesOf = (state: AgentState): Record<string, BranchSummary> => {
  const leaf = leaves(state)
  const summaries: Record<string, BranchSummary> = {}
  for (const [index, { branch, source, from, created }] of state.store.lanes.entries()) {
    if (branch === null || created > state.tail_sequence) continue
    summaries[branch] = {
      branch_id: branch,
      source_branch_id: source,
      from_record_id: from,
      leaf_record_id: leaf.get(index) ?? from,
    }
  }
  return summaries
}

/** The whole state as plain data: what two replays of the same records agree on. */
export const materialise = (state: AgentState): Materialised => {
  const view = activeView(state)
  return {
    session_id: state.session_id,
    tail_sequence: state.tail_sequence,
    tail_record_id: state.tail_record_id,
    metadata: state.metadata,
    active_branch_id: laneAt(state.store, view.lane).branch,
    branches: branchesOf(state),
    ...project(view),
  }
}
