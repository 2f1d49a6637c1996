import { duplicateEntity, invalidReference, invalidTransition } from './replay-error.ts'
import { addLane, emptyLane, laneAt } from './store.ts'
import { contextOf, findRecord, isSafeToFork, openOf, type View } from './view.ts'
import type { RecordOf, Write } from './write.ts'

/** The branch that goes by `main` has the session's own UUID (spec/session-record.md B.10), and no second name. */
export const isAliasOfMain = (branch: string | null, sessionId: string): boolean =>
  branch === `brn_${sessionId.slice('ses_'.length)}`

/** The lane of a branch that exists by the time of this view. */
const laneOf = ({ store, at }: View, branch: string): number | undefined => {
  const index = store.laneOf.get(branch)
  return index !== undefined && laneAt(store, index).created <= at ? index : undefined
}

/**
 * A branch with a record of its source's history as its past. Nothing of that past is copied or replayed: the new lane
 * names where it goes on from. It takes over no open question and no visible call without a result, since such a place
 * is not safe to fork. Does not switch.
 */
export const branchCreated = (
  view: View,
  { sequence, session_id, data }: RecordOf<'branch_created'>,
): Write => {
  const { source_branch_id, branch_id, from_record_id } = data
  if (laneOf(view, branch_id) !== undefined || isAliasOfMain(branch_id, session_id)) duplicateEntity('branch')
  const source = laneOf(view, source_branch_id) ?? invalidReference('source_branch')
  const from =
    findRecord({ ...view, lane: source }, from_record_id) ??
    invalidReference('fork_point_outside_source_branch')
  const past: View = { store: view.store, lane: from.lane, at: from.sequence }
  if (!isSafeToFork(past)) invalidTransition('unsafe_fork_point')
  return (store) => {
    const parent = laneAt(store, from.lane)
    const lane = emptyLane({
      branch: branch_id,
      source: source_branch_id,
      from: from_record_id,
      parent: from.lane,
      cut: from.sequence,
      created: sequence,
    })
    const configuration = parent.configurations.at(from.sequence)
    const checkpoint = parent.checkpoints.at(from.sequence)
    if (configuration) lane.configurations.push(sequence, configuration)
    if (checkpoint) lane.checkpoints.push(sequence, checkpoint)
    lane.contexts.push(sequence, contextOf(past))
    lane.open.push(sequence, openOf(past))
    return addLane(store, lane)
  }
}

/** Goes on with a branch from where it was left. */
export const activeBranchChanged = (
  view: View,
  { sequence, data }: RecordOf<'active_branch_changed'>,
): Write => {
  const lane = laneOf(view, data.branch_id) ?? invalidReference('active_branch_change')
  return (store) => {
    store.active.push(sequence, lane)
    return lane
  }
}
