import type { AgentState } from './agent/state.ts'
import { laneAt } from './agent/store.ts'
import { piecesOf } from './agent/view.ts'
import type { Entry } from './entry.ts'

/** A branch's line: for each branch that it runs through, the last sequence up to which it does. */
export type Line = ReadonlyMap<string, number>

/** The root of a session that was imported without branches has no name of its own, and its lifecycle is on `main`. */
const nameOf = (branch: string | null): string => branch ?? 'main'

/**
 * The line of a branch as it is at a state: what lies on its ancestors up to where it was forked off, and then what is
 * its own. Null for a branch that is not there.
 */
export const lineOf = ({ store, tail_sequence: at }: AgentState, branch: string): Line | null => {
  const lane = store.lanes.findIndex((one) => nameOf(one.branch) === branch)
  if (lane < 0 || laneAt(store, lane).created > at) return null
  const pieces = [...piecesOf({ store, lane, at })]
  return new Map(pieces.map((piece) => [nameOf(piece.lane.branch), piece.at]))
}

/** Whether an entry lies on a line; those of the session's life lie on `main`. */
export const isOnLine = (line: Line, { branch, sequence }: Pick<Entry, 'branch' | 'sequence'>): boolean =>
  sequence <= (line.get(nameOf(branch)) ?? -1)
