import fc from 'fast-check'
import { GatehouseError } from '../../../lib/errors.ts'
import { chain, type Entry, emptyHead, fromLine, type Statement, toLine } from '../../../lib/journal/entry.ts'
import { type Fact, factSchema } from '../../../lib/journal/facts.ts'
import { foldState, isReplayError, type JournalState } from '../../../lib/journal/state.ts'
import type { SessionItem } from '../../../lib/session/item.ts'
import { at, system } from '../../support/sessions.ts'
import { begin, make } from '../session/walk.ts'
import { type Dice, moveCount, proposal } from './agent/walk.ts'

/** What comes next in a journal: something of the session's life, something to watch, or a throw of the agent's. */
type Next = 'life' | { readonly event: string } | Dice

const throws = fc.record({
  move: fc.nat({ max: moveCount - 1 }),
  pick: fc.nat({ max: 1000 }),
  later: fc.nat({ max: 1000 }),
})
/** A call from its declaration to its result. */
const road = fc
  .record({ pick: fc.nat({ max: 1000 }), later: fc.nat({ max: 1000 }) })
  .map((rest): Next[] => [1, 2, 2, 3, 3, 7, 7, 8, 8, 11, 11].map((move) => ({ move, ...rest })))
/** The last moves but one make a branch of some record, which few records allow. */
const forks = fc
  .array(throws, { minLength: 8, maxLength: 8 })
  .map((tried): Next[] => tried.map((dice) => ({ ...dice, move: moveCount - 2 })))
const next: fc.Arbitrary<Next[]> = fc.oneof(
  { weight: 2, arbitrary: fc.constant<Next[]>(['life', 'life', 'life', 'life']) },
  { weight: 1, arbitrary: forks },
  { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 20 }).map((event): Next[] => [{ event }]) },
  { weight: 3, arbitrary: throws.map((dice): Next[] => [dice]) },
  { weight: 1, arbitrary: road },
)

/** A session's facts as its machine, its worker and its people bring them about. */
const lifeOf = (dice: number): Fact[] => {
  let item: SessionItem = begin(dice)
  for (let moved = 0; moved < 30; moved++)
    try {
      item = make(item, { kind: 'onward', dice }, moved * 100)
    } catch (error) {
      if (!(error instanceof GatehouseError)) throw error
    }
  return item.outbox.map(({ line }) => {
    const { type, data } = fromLine(line)
    return factSchema.parse({ type, data })
  })
}

export type History = { readonly entries: readonly Entry[]; readonly states: readonly JournalState[] }

const statementOf = (
  one: Next,
  life: Iterator<Fact, undefined>,
  state: JournalState | null,
): Statement | null => {
  if (state === null || one === 'life') return life.next().value ?? null
  if ('event' in one) return { type: 'error', data: { message: `\u001f ${one.event}` } }
  const { id, time, branch, type, data } = proposal(state.agent, one)
  return { ...factSchema.parse({ type, data }), context: { id, time, branch } }
}

/** A legal journal with the state after each of its entries; what the agent proposes and is refused is left out. */
const made = (dice: number, road: readonly Next[]): History => {
  const facts = lifeOf(dice)
  const life = facts.values()
  const [creation] = facts
  if (creation?.type !== 'session_created') throw new Error('a session begins with its creation')
  const stamp = { sessionId: creation.data.id, time: at(0), actor: system }
  const entries: Entry[] = []
  const states: JournalState[] = []
  for (const one of ['life' as const, ...road]) {
    const state = states.at(-1) ?? null
    const statement = statementOf(one, life, state)
    if (!statement) continue
    const [entry] = chain(state?.head ?? emptyHead, [statement], stamp).entries
    try {
      if (!entry) continue
      states.push(foldState(state, entry))
      entries.push(entry)
    } catch (error) {
      if (!isReplayError(error)) throw error
    }
  }
  return { entries, states }
}

/** Throws with which a session goes on straight ahead: all green, idle, all red, or held up. */
const ways = fc.constantFrom(1, 31, 111, 2, 122)

/** Random legal journals: a session's life with the agent's walks and events in between. */
export const histories: fc.Arbitrary<History> = fc
  .tuple(ways, fc.array(next, { minLength: 5, maxLength: 40 }))
  .map(([dice, pieces]) => made(dice, pieces.flat()))

export const linesOf = ({ entries }: History): string[] => entries.map(toLine)
