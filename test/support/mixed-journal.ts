import fc from 'fast-check'
import { GatehouseError } from '../../lib/errors.ts'
import { agentFactSchema } from '../../lib/journal/agent/records.ts'
import { fromLine } from '../../lib/journal/entry.ts'
import { foldState, type JournalState } from '../../lib/journal/state.ts'
import { type Change, changeItem, type SessionItem } from '../../lib/session/item.ts'
import { attempt, type Dice, moveCount, proposal } from '../unit/journal/agent/walk.ts'
import { begin, type Move, make, moves } from '../unit/session/walk.ts'
import { at, system } from './sessions.ts'

const moveKinds = Object.keys(moves)
  .filter((kind): kind is Move['kind'] => kind in moves)
  // It says that lines have reached the journal, which here has to be true.
  .filter((kind) => kind !== 'drain')

/** What is done to a session next: a move of its life, a record of its agent, or events. */
export type Throw =
  | { readonly kind: 'session'; readonly move: Move }
  | { readonly kind: 'agent'; readonly dice: Dice }
  | { readonly kind: 'events'; readonly count: number }

const dice = fc.nat({ max: 10_000 })

const session: fc.Arbitrary<Throw> = fc.record({
  kind: fc.constant('session' as const),
  move: fc.record({
    kind: fc.oneof(
      { weight: 5, arbitrary: fc.constant('onward' as const) },
      { weight: 1, arbitrary: fc.constantFrom(...moveKinds) },
    ),
    dice,
  }),
})
const events: fc.Arbitrary<Throw> = fc.record({
  kind: fc.constant('events' as const),
  count: fc.integer({ min: 1, max: 6 }),
})
const agent = (moves: readonly number[]): fc.Arbitrary<Throw[]> =>
  fc
    .record({ pick: dice, later: dice })
    .map((rest) => moves.map((move) => ({ kind: 'agent', dice: { move, ...rest } })))

/** Of the agent, whole roads of a call among single records, or hardly any would come to its end. */
export const anyThrows: fc.Arbitrary<Throw[]> = fc
  .array(
    fc.oneof(
      { weight: 4, arbitrary: session.map((one) => [one]) },
      { weight: 2, arbitrary: events.map((one) => [one]) },
      { weight: 4, arbitrary: fc.nat({ max: moveCount - 1 }).chain((move) => agent([move])) },
      { weight: 2, arbitrary: agent([0, 0, 12]) },
      { weight: 1, arbitrary: agent([1, 2, 2, 3, 3, 7, 7, 8, 8, 11, 11]) },
    ),
    { minLength: 8, maxLength: 25 },
  )
  .map((pieces) => pieces.flat())

/** A session in memory, with what its journal comes to from zero at each of its entries. */
export type Mixed = { readonly item: SessionItem; readonly states: readonly JournalState[] }

export const lastOf = ({ states }: Mixed): JournalState => {
  const state = states.at(-1)
  if (!state) throw new Error('a journal has entries')
  return state
}

/** Folds what a write has added. */
const grown = (states: readonly JournalState[], item: SessionItem): Mixed => {
  const all = [...states]
  for (const { sequence, line } of item.outbox)
    if (sequence >= all.length) all.push(foldState(all.at(-1) ?? null, fromLine(line)))
  return { item, states: all }
}

export const beginMixed = (dice: number): Mixed => grown([], begin(dice))

export const changeMixed = ({ item, states }: Mixed, change: Change): Mixed =>
  grown(states, changeItem(item, change, at(states.length)))

/** The agent's record that a throw proposes, as a change; null where it is refused. */
const said = (mixed: Mixed, dice: Dice): Change | null => {
  const { agent } = lastOf(mixed)
  const record = { ...proposal(agent, dice), session_id: mixed.item.id }
  if (!attempt(agent, record)) return null
  const { type, data, id, time, branch } = record
  return {
    actor: system,
    facts: [{ ...agentFactSchema.parse({ type, data }), context: { id, time, branch } }],
  }
}

/** The session after a throw; as it was where that was refused. */
export const thrown = (mixed: Mixed, one: Throw): Mixed => {
  if (one.kind === 'events') {
    const facts = Array.from({ length: one.count }, (_, n) => ({
      ...{ type: 'error' as const, data: { message: `m${n}` } },
    }))
    return changeMixed(mixed, { actor: system, facts })
  }
  if (one.kind === 'agent') {
    const change = said(mixed, one.dice)
    return change ? changeMixed(mixed, change) : mixed
  }
  try {
    return grown(mixed.states, make(mixed.item, one.move, mixed.states.length * 1000))
  } catch (error) {
    if (!(error instanceof GatehouseError)) throw error
    return mixed
  }
}
