import type { AgentRecord } from './envelope.ts'
import type { AgentFactType } from './records.ts'
import { type Lane, laneAt, type Store } from './store.ts'
import { openOf, type View } from './view.ts'

export type RecordOf<Type extends AgentFactType> = Extract<AgentRecord, { type: Type }>

/**
 * What an accepted record adds, once every check has passed; it can't fail. Answers the lane whose history the record
 * belongs to.
 */
export type Write = (store: Store) => number

/** A record that belongs to the history of the branch it was checked on. */
export const onLane =
  ({ lane }: View, write: (lane: Lane, store: Store) => void): Write =>
  (store) => {
    write(laneAt(store, lane), store)
    return lane
  }

/** The lane's count of what is open, changed by these amounts. */
export const countOpen = (
  view: View,
  lane: Lane,
  sequence: number,
  change: { unsettled?: number; pending?: number },
): void => {
  const { unsettled, pending } = openOf(view)
  lane.open.push(sequence, {
    unsettled: unsettled + (change.unsettled ?? 0),
    pending: pending + (change.pending ?? 0),
  })
}
