import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { AgentRecord } from '../../../lib/journal/agent/envelope.ts'
import { apply, passOver } from '../../../lib/journal/agent/reducer.ts'
import type { AgentState } from '../../../lib/journal/agent/state.ts'
import { isOnLine, lineOf } from '../../../lib/journal/lineage.ts'
import { created, follow, id, moveCount, recordAfter, start, userSays, walk } from './agent/walk.ts'

const on = (state: AgentState, records: readonly AgentRecord[], branch: string): AgentRecord[] | null => {
  const line = lineOf(state, branch)
  return line && records.filter((record) => isOnLine(line, record))
}

/** The same by the definition: all of the source's line up to the record that the branch begins with, then its own. */
const byDefinition = (records: readonly AgentRecord[], branch: string): AgentRecord[] => {
  const own = records.filter((record) => record.branch === branch)
  const made = records.find((record) => record.type === 'branch_created' && record.data.branch_id === branch)
  if (made?.type !== 'branch_created') return own
  const source = byDefinition(records, made.data.source_branch_id)
  const last = source.findIndex((record) => record.id === made.data.from_record_id)
  return [...source.slice(0, last + 1), ...own]
}

const say = fc.record({ move: fc.constant(0), pick: fc.constant(0), later: fc.constant(0) })
const branching = fc.record({
  move: fc.constantFrom(moveCount - 2, moveCount - 1),
  pick: fc.nat({ max: 1000 }),
  later: fc.nat({ max: 1000 }),
})

it('the line of a branch is its ancestors’ up to each fork, and then its own', () => {
  const seen = { branches: 0, deepest: 0 }
  fc.assert(
    fc.property(fc.array(fc.oneof(say, branching), { minLength: 20, maxLength: 60 }), (throws) => {
      const { records, states } = walk(throws)
      const state = states.at(-1) ?? start()
      for (const { branch } of state.store.lanes) {
        expect(on(state, records, branch ?? 'main')).toEqual(byDefinition(records, branch ?? 'main'))
        seen.branches += 1
        seen.deepest = Math.max(seen.deepest, lineOf(state, branch ?? 'main')?.size ?? 0)
      }
    }),
    { numRuns: 200 },
  )
  expect(seen.branches).toBeGreaterThan(300)
  expect(seen.deepest).toBeGreaterThan(2)
})

it('there is no line of a branch that was not made, or not yet', () => {
  const before = start()
  const after = follow(before, {
    type: 'branch_created',
    data: { source_branch_id: 'main', branch_id: id('brn', 9), from_record_id: id('evt', 0) },
  })
  expect(lineOf(after, id('brn', 9))).not.toBeNull()
  expect(lineOf(after, id('brn', 8))).toBeNull()
  expect(lineOf(before, id('brn', 9))).toBeNull()
})

it('what is on main before the fork is on the branch’s line, whoever said it; what comes after is not', () => {
  const said = follow(passOver(start(), 3), { type: 'message_committed', data: { message: userSays(4) } })
  const forked = follow(said, {
    type: 'branch_created',
    data: { source_branch_id: 'main', branch_id: id('brn', 9), from_record_id: id('evt', 4) },
  })
  const line = lineOf(forked, id('brn', 9)) ?? new Map()
  const mains = [0, 1, 2, 3, 4, 5, 6].filter((sequence) => isOnLine(line, { branch: 'main', sequence }))
  expect(mains).toEqual([0, 1, 2, 3, 4])
})

it('a session without branches is one line, which is main', () => {
  const records = [created(null)]
  let state = start(null)
  for (let n = 1; n < 4; n++) {
    const record = recordAfter(state, { type: 'message_committed', data: { message: userSays(n) } })
    records.push(record)
    state = apply(state, record)
  }
  expect(on(state, records, 'main')).toEqual(records)
})
