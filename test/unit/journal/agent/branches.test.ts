import { expect, it } from 'vitest'
import { serialise } from '../../../../lib/journal/agent/serialise.ts'
import { type AgentState, materialise } from '../../../../lib/journal/agent/state.ts'
import { follow, id, start, userSays } from './walk.ts'

const said = (count: number): AgentState => {
  let state = start()
  for (let n = 1; n <= count; n++)
    state = follow(state, { type: 'message_committed', data: { message: userSays(n) } })
  return state
}

const fork = (state: AgentState, from: number, branch: number, source = 'main'): AgentState =>
  follow(state, {
    type: 'branch_created',
    data: { source_branch_id: source, branch_id: id('brn', branch), from_record_id: id('evt', from) },
  })

const onto = (state: AgentState, branch: string): AgentState =>
  follow(state, { type: 'active_branch_changed', data: { branch_id: branch } })

it('a fork writes as little from a long history as from a short one', () => {
  const laneOf = (count: number) => {
    const [, lane] = serialise(fork(said(count), count, 9)).lanes
    const { configurations, contexts, checkpoints, open, ...rest } = lane ?? {}
    expect([configurations, contexts, open].map((one) => one?.length)).toEqual([1, 1, 1])
    expect(checkpoints).toEqual([])
    return rest
  }
  expect(laneOf(300)).toMatchObject({ parent: 0, cut: 300, messages: [], calls: [], approvals: [], runs: [] })
  expect(laneOf(2)).toMatchObject({ parent: 0, cut: 2, messages: [], calls: [], approvals: [], runs: [] })
})

it('forks of forks see each just their own past', () => {
  const first = onto(fork(said(3), 2, 9), id('brn', 9))
  const second = follow(first, { type: 'message_committed', data: { message: userSays(20) } })
  const third = onto(fork(second, 1, 10, id('brn', 9)), id('brn', 10))
  const fourth = onto(fork(third, 6, 11, id('brn', 9)), id('brn', 11))
  const ids = (state: AgentState) => materialise(state).messages.map((message) => message.id)
  expect(ids(second)).toEqual([1, 2, 20].map((n) => id('msg', n)))
  expect(ids(third)).toEqual([1].map((n) => id('msg', n)))
  expect(ids(fourth)).toEqual([1, 2, 20].map((n) => id('msg', n)))
  expect(ids(onto(fourth, 'main'))).toEqual([1, 2, 3].map((n) => id('msg', n)))
})

it('two successors of one state do not see each other', () => {
  const state = said(2)
  const one = fork(state, 1, 9)
  const other = fork(state, 2, 9)
  expect(materialise(one).branches[id('brn', 9)]?.from_record_id).toBe(id('evt', 1))
  expect(materialise(other).branches[id('brn', 9)]?.from_record_id).toBe(id('evt', 2))
  expect(Object.keys(materialise(state).branches)).toEqual(['main'])
})

it('a fork takes over the configuration and the checkpoint of its past, and no later ones', () => {
  const configured = (state: AgentState, n: number) =>
    follow(
      state,
      { type: 'configuration_changed', data: { profile_id: `profile-${n}` } },
      {
        type: 'turn_checkpointed',
        data: { run_id: id('run', n), turn_id: id('turn', n), next_action: 'model_request' },
      },
    )
  const forked = onto(fork(configured(configured(start(), 1), 2), 2, 9), id('brn', 9))
  expect(materialise(forked)).toMatchObject({
    configuration: { profile_id: 'profile-1' },
    latest_checkpoint: { run_id: id('run', 1), sequence: 2 },
  })
})
