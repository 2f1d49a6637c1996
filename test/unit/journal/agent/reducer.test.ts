import { expect, it } from 'vitest'
import { apply, replay, skip } from '../../../../lib/journal/agent/reducer.ts'
import { AgentReplayError } from '../../../../lib/journal/agent/replay-error.ts'
import { restore, serialise } from '../../../../lib/journal/agent/serialise.ts'
import { materialise } from '../../../../lib/journal/agent/state.ts'
import { created, follow, id, recordAfter, session, start, userSays } from './walk.ts'

const refusedAs = (act: () => unknown, problem: object) => {
  expect(act).toThrow(AgentReplayError)
  expect(act).toThrow(expect.objectContaining({ problem: expect.objectContaining(problem) }))
}

const says = (n: number) => ({ type: 'message_committed', data: { message: userSays(n) } }) as const

it('no records at all are an empty log', () => {
  refusedAs(() => replay([]), { kind: 'EmptyLog' })
})

it('after the last sequence there is no other', () => {
  const last = { ...serialise(start()), tail_sequence: Number.MAX_SAFE_INTEGER }
  const state = restore(last)
  refusedAs(() => apply(state, recordAfter(state, says(1), 1)), { kind: 'SequenceOverflow' })
})

it('an error says what was expected and what came', () => {
  const state = follow(start(), says(1))
  const record = recordAfter(state, says(2))
  refusedAs(() => apply(state, { ...record, sequence: 7 }), {
    kind: 'SequenceMismatch',
    expected: 2,
    actual: 7,
  })
  refusedAs(() => apply(state, { ...record, session_id: id('ses', 2) }), {
    ...{ kind: 'SessionMismatch', expected: session, actual: id('ses', 2) },
  })
})

it('the branch of the session’s own UUID has no second name', () => {
  const alias = `brn_${session.slice(4)}`
  refusedAs(() => apply(null, { ...created(), branch: alias }), { kind: 'InvalidCreation' })
  const state = follow(start(), says(1))
  const fork = { source_branch_id: 'main', branch_id: alias, from_record_id: id('evt', 1) }
  refusedAs(() => follow(state, { type: 'branch_created', data: fork }), { kind: 'DuplicateEntity' })
})

it('other entries of the journal take their sequence and change nothing', () => {
  const before = follow(start(), says(1))
  const after = skip(before, { session_id: session, sequence: 2 })
  expect(materialise(after)).toEqual({ ...materialise(before), tail_sequence: 2 })
  const said = follow(after, says(3))
  expect(materialise(said).messages).toHaveLength(2)
  expect(materialise(before).tail_sequence).toBe(1)
  refusedAs(() => skip(said, { session_id: session, sequence: 3 }), { kind: 'SequenceMismatch' })
  refusedAs(() => skip(said, { session_id: id('ses', 2), sequence: 4 }), { kind: 'SessionMismatch' })
  refusedAs(() => skip(null, { session_id: session, sequence: 0 }), { kind: 'InvalidCreation' })
})

it('a session without branches shows all of its past', () => {
  const state = follow(start(null), says(1))
  expect(materialise(state)).toMatchObject({ active_branch_id: null, branches: {} })
  refusedAs(() => follow(state, { type: 'active_branch_changed', data: { branch_id: 'main' } }), {
    ...{ kind: 'InvalidReference', reference: 'active_branch_change' },
  })
})

it('a record is added to what is there, and only a state that has a successor is copied', () => {
  const before = follow(start(), says(1))
  const after = follow(before, says(2))
  expect(after.store).toBe(before.store)
  expect(follow(before, says(3)).store).not.toBe(before.store)
  expect(follow(after, says(3)).store).toBe(before.store)
})
