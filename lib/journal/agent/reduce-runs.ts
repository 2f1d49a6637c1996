import type { RunRecovery } from './projection.ts'
import { invalidTransition } from './replay-error.ts'
import { laneAt } from './store.ts'
import { findRun, type View } from './view.ts'
import { onLane, type RecordOf, type Write } from './write.ts'

const ended = (view: View, sequence: number, run_id: string, recovery: RunRecovery): Write => {
  if (findRun(view, run_id)) invalidTransition('duplicate_run_terminal')
  return onLane(view, (lane) => lane.runs.set(run_id, sequence, recovery))
}

export const runInterrupted = (
  view: View,
  { sequence, data: { run_id, turn_id, reason } }: RecordOf<'run_interrupted'>,
): Write => ended(view, sequence, run_id, { status: 'interrupted', turn_id, reason })

export const runCancelled = (view: View, { sequence, data }: RecordOf<'run_cancelled'>): Write =>
  ended(view, sequence, data.run_id, { status: 'cancelled' })

export const turnCheckpointed = (view: View, { sequence, id, data }: RecordOf<'turn_checkpointed'>): Write =>
  onLane(view, (lane) => lane.checkpoints.push(sequence, { ...data, record_id: id, sequence }))

export const configurationChanged = (
  view: View,
  { sequence, data }: RecordOf<'configuration_changed'>,
): Write => {
  const before = laneAt(view.store, view.lane).configurations.at(view.at)
  if (!before) return invalidTransition('missing_configuration')
  return onLane(view, (lane) =>
    lane.configurations.push(sequence, {
      model: data.model ?? before.model,
      profile_id: data.profile_id ?? before.profile_id,
      reasoning_effort: data.reasoning_effort ?? before.reasoning_effort,
    }),
  )
}
