import type { ToolCallBlock } from './content.ts'
import type { IdIndex } from './id-index.ts'
import { declaredCalls, type Message } from './messages.ts'
import type { ToolCall } from './projection.ts'
import { type Context, type Lane, laneAt, type Open, type Store } from './store.ts'

/** A branch's history up to and with a sequence. Reading it never changes anything. */
export type View = { readonly store: Store; readonly lane: number; readonly at: number }

const nowhere: Context = { floor: -1, summaries: [], latest: null }
const nothingOpen: Open = { unsettled: 0, pending: 0 }

/** The pieces that a history consists of, from the branch itself to the root, each with the last sequence of it. */
export function* piecesOf({ store, lane, at }: View): Generator<{ lane: Lane; index: number; at: number }> {
  let index: number | null = lane
  let upTo = at
  while (index !== null) {
    const piece: Lane = laneAt(store, index)
    yield { lane: piece, index, at: upTo }
    index = piece.parent
    upTo = piece.cut
  }
}

/** The lane of this history that holds the record with a sequence; undefined for one of another branch. */
const holderOf = (view: View, sequence: number): number | undefined => {
  const lane = view.store.places.at(sequence)
  for (const { index, at } of piecesOf(view)) if (index === lane) return sequence <= at ? lane : undefined
  return undefined
}

export const contextOf = ({ store, lane, at }: View): Context =>
  laneAt(store, lane).contexts.at(at) ?? nowhere

export const openOf = ({ store, lane, at }: View): Open => laneAt(store, lane).open.at(at) ?? nothingOpen

/** Whether an id was used in the session by the time of this view, on whatever branch. */
export const isUsed = (ids: IdIndex, id: string, at: number): boolean => {
  const sequence = ids.get(id)
  return sequence !== undefined && sequence <= at
}

/** Where in this history a record stands, with the lane that holds it; null for one of another branch. */
export const findRecord = (view: View, id: string): { sequence: number; lane: number } | null => {
  const sequence = view.store.records.get(id)
  if (sequence === undefined || sequence > view.at) return null
  const lane = holderOf(view, sequence)
  return lane === undefined ? null : { sequence, lane }
}

/** A call's state on this branch; its cost grows with the depth of forks, not with the length of the history. */
export const findCall = (view: View, id: string): ToolCall | undefined => {
  for (const { lane, at } of piecesOf(view)) {
    const call = lane.calls.get(id, at)
    if (call) return call
  }
  return undefined
}

export const findRun = (view: View, id: string) => {
  for (const { lane, at } of piecesOf(view)) {
    const run = lane.runs.get(id, at)
    if (run) return run
  }
  return undefined
}

export const isSettled = (call: ToolCall | undefined): boolean =>
  call?.execution.status === 'finished' && call.result_message_id !== null

/** Where the call was declared, as the assistant's message says it; null where that is not visible here. */
export const findDeclaration = (view: View, id: string): ToolCallBlock | null => {
  const { declarations, places, lanes } = view.store
  const declared = declarations.get(id)
  if (declared === undefined || declared > view.at || !isVisible(view, id, declared)) return null
  const message = lanes[places.at(declared) ?? 0]?.messages.at(declared)
  return message ? (declaredCalls(message).find((call) => call.tool_call_id === id) ?? null) : null
}

/**
 * Whether a message that is visible here declares the call, which was declared at this sequence. A session without
 * branches shows all of its past.
 */
export const isVisible = (view: View, id: string, declared: number): boolean => {
  if (laneAt(view.store, view.lane).branch === null) return true
  const { floor, summaries } = contextOf(view)
  return (
    (declared > floor && holderOf(view, declared) !== undefined) ||
    summaries.some(({ message }) => declaredCalls(message).some((call) => call.tool_call_id === id))
  )
}

/** The messages that were committed in this history after a sequence, in order. */
export const messagesAfter = (view: View, floor: number): Message[] => {
  const pieces: Message[][] = []
  for (const { lane, at } of piecesOf(view)) {
    if (at <= floor) break
    pieces.push([...lane.messages.between(floor, at)].map(([, message]) => message))
  }
  return pieces.reverse().flat()
}

/** The transcript: the summaries, and what was said after the place through which they speak. */
export const transcriptOf = (view: View): Message[] => {
  const { floor, summaries } = contextOf(view)
  return [...summaries.map(({ message }) => message), ...messagesAfter(view, floor)]
}

/** How many calls that these messages declare have no result message yet. */
export const countUnsettled = (view: View, messages: readonly Message[]): number => {
  const ids = new Set(messages.flatMap(declaredCalls).map((call) => call.tool_call_id))
  return [...ids].filter((id) => !isSettled(findCall(view, id))).length
}

/** No open question, and every call that a visible message declares has its result (spec/session-record.md B.6). */
export const isSafeToFork = (view: View): boolean => {
  const { unsettled, pending } = openOf(view)
  return unsettled === 0 && pending === 0
}
