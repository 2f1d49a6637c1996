import { describe, expect, it } from 'vitest'
import { type Message, messageSchema } from '../../../../lib/journal/agent/messages.ts'
import { agentFactSchema } from '../../../../lib/journal/agent/records.ts'
import { recoveryOf } from '../../../../lib/journal/agent/recovery.ts'
import { type AgentState, materialise } from '../../../../lib/journal/agent/state.ts'
import * as order from '../../../../lib/journal/agent/write-order.ts'
import { assistantCalls, follow, id, start, time, userSays } from './walk.ts'

const assistant = (message: Message) => {
  if (message.type !== 'assistant') throw new Error('it is the assistant’s')
  return message
}
const turn = { run_id: id('run', 1), turn_id: id('turn', 1) }
const asks = assistant(assistantCalls(2, [1, 2]))
const call = (n: number) => id('call', n)
const begin = (n: number) =>
  ({ tool_call_id: call(n), execution_target: 'native', idempotency: 'idempotent' }) as const
const message = (n: number, about: number) => ({
  ...{ id: id('msg', n), timestamp: time(n), tool_call_id: call(about), tool_name: 'read_file' },
})
const done = (n: number, about: number): order.Ending => ({
  message: message(n, about),
  result: { is_error: false, content: [{ type: 'text', text: `result of ${about}` }] },
})
const final = assistant(
  messageSchema.parse({
    ...{ type: 'assistant', id: id('msg', 30), timestamp: time(30), stop_reason: 'completed' },
    content: [{ type: 'text', text: 'All done' }],
  }),
)

const begun = follow(start(), { type: 'message_committed', data: { message: userSays(1) } })
const written = (...batches: order.Batch[]): AgentState =>
  batches.reduce((state, batch) => follow(state, ...batch.map((fact) => agentFactSchema.parse(fact))), begun)

/** A journal in memory: a batch is there whole or not at all. */
const memory = (): order.AgentJournal & { state: AgentState } => ({
  state: begun,
  async append(batch) {
    this.state = follow(this.state, ...batch)
  },
})

const situations = (state: AgentState, now = time(40)) => {
  const { run, new_run, calls } = recoveryOf(state, now)
  return { run, new_run, calls: calls.map(({ situation }) => situation) }
}

const whole = [
  order.toolsAsked(asks),
  order.toolAllowed(begin(1)),
  order.toolAllowed(begin(2)),
  ...order.inModelsOrder(asks, [done(11, 2), done(10, 1)]).map(order.toolEnded),
  order.batchDone(turn),
  order.answered({ ...turn, turn_id: id('turn', 2) }, final),
]

it('a crash between any two batches leaves a state with a way on', () => {
  const after = whole.map((_, last) => situations(written(...whole.slice(0, last + 1))))
  const batch = (...calls: string[]) => ({ run: 'unfinished_batch', new_run: false, calls })
  expect(situations(begun)).toEqual({ run: 'clean', new_run: true, calls: [] })
  expect(after).toEqual([
    batch('undecided', 'undecided'),
    batch('outcome_unknown', 'undecided'),
    batch('outcome_unknown', 'outcome_unknown'),
    batch('outcome_unknown'),
    { run: 'clean', new_run: true, calls: [] },
    { run: 'died_between_turns', new_run: true, calls: [] },
    { run: 'run_ended', new_run: true, calls: [] },
  ])
})

it('results are committed in the model’s order, however they came about', () => {
  const { messages } = materialise(written(...whole))
  const results = messages.flatMap((one) => (one.type === 'tool_result' ? [one.tool_call_id] : []))
  expect(results).toEqual([call(1), call(2)])
  expect(() => order.inModelsOrder(asks, [done(10, 1)])).toThrow(RangeError)
})

const asked = [
  order.toolsAsked(assistant(assistantCalls(2, [1]))),
  order.approvalAsked(turn, { approval_id: id('apr', 1), tool_call_id: call(1), expires_at: time(50) }),
]

describe('a question', () => {
  it('waits, and no run begins meanwhile', () => {
    const state = written(...asked)
    expect(situations(state)).toEqual({ run: 'waiting_for_approval', new_run: false, calls: ['waiting'] })
    expect(recoveryOf(state, time(49)).calls[0]?.may).toEqual(['resolve_approval', 'wait'])
    expect(recoveryOf(state, time(50)).calls[0]?.may).toEqual(['expire_approval'])
  })

  it('that is granted goes on with the call', () => {
    const state = written(...asked, order.approvalGranted(id('apr', 1), 'allow_session', begin(1)))
    expect(situations(state).calls).toEqual(['outcome_unknown'])
    expect(
      situations(
        written(
          ...asked,
          order.approvalGranted(id('apr', 1), 'allow_once', begin(1)),
          order.toolEnded(done(10, 1)),
        ),
      ).new_run,
    ).toBe(true)
  })

  it('that lapses ends the call, and a run may begin', () => {
    const lapsed = order
      .approvalLapsed(id('apr', 1), message(10, 1))
      .map((fact) => agentFactSchema.parse(fact))
    let state = written(...asked)
    while (state.tail_sequence < 50)
      state = follow(state, { type: 'configuration_changed', data: { profile_id: 'p' } })
    state = follow(state, ...lapsed)
    expect(situations(state, time(60))).toMatchObject({ new_run: true, calls: [] })
  })
})

it('a call that was turned down tells the model so', () => {
  const refusal = order.turnedDown({ code: 'policy_denied', message: 'not allowed here' })
  expect(refusal).toMatchObject({ is_error: true, error: { code: 'policy_denied' } })
  const only = order.toolsAsked(assistant(assistantCalls(2, [1])))
  const refused = written(only, order.toolRefused(message(10, 1), { code: 'policy_denied', message: 'no' }))
  const denied = written(...asked, order.approvalDenied(id('apr', 1), message(10, 1)))
  expect(materialise(refused).messages.at(-1)).toMatchObject({
    is_error: true,
    error: { code: 'policy_denied' },
  })
  expect(materialise(denied).messages.at(-1)).toMatchObject({
    is_error: true,
    error: { code: 'approval_denied' },
  })
  for (const state of [refused, denied]) expect(situations(state).new_run).toBe(true)
})

describe('a run that failed', () => {
  const failed = [order.toolsAsked(assistant(assistantCalls(2, [1]))), order.toolAllowed(begin(1))]
  const state = written(...failed, order.runFailed(turn, 'the worker was lost', [call(1)]))

  it('says first that what was in flight is unknown, then that the run broke', () => {
    expect(order.runFailed(turn, 'lost', [call(1), call(2)]).map(({ type }) => type)).toEqual([
      ...['tool_execution_interrupted', 'tool_execution_interrupted', 'run_interrupted'],
    ])
    expect(situations(state)).toEqual({ run: 'unfinished_batch', new_run: false, calls: ['interrupted'] })
  })

  it('is never run again by itself, and goes on after somebody’s word', () => {
    expect(recoveryOf(state, time(40)).calls[0]?.may).toEqual([
      ...['resolve_as_failed', 'resolve_as_succeeded', 'reoffer'],
    ])
    const resolved = order.interruptionResolved(done(10, 1), 'ada', 'looked at the file')
    const settled = follow(state, ...resolved.map((fact) => agentFactSchema.parse(fact)))
    expect(situations(settled)).toEqual({ run: 'clean', new_run: true, calls: [] })
  })

  it('knows its last run by what became of it', () => {
    const at = (...more: order.Batch[]) => situations(written(order.batchDone(turn), ...more)).run
    expect(at()).toBe('died_between_turns')
    expect(at(order.runFailed(turn, 'the stream broke', []))).toBe('run_interrupted')
    expect(at(order.runCancelled(turn.run_id))).toBe('run_cancelled')
  })
})

it('a paused turn goes on with the model', () => {
  const paused = { ...final, stop_reason: 'pause_turn' }
  expect(order.answered(turn, paused).at(-1)).toMatchObject({ data: { next_action: 'model_request' } })
})

it('a batch of which one fact is refused leaves nothing in the journal', async () => {
  const journal = memory()
  await journal.append(order.toolsAsked(asks))
  const before = materialise(journal.state)
  const wrong: order.Batch = [...order.toolAllowed(begin(1)), ...order.toolAllowed(begin(1))]
  await expect(journal.append(wrong)).rejects.toThrow('duplicate_policy_decision')
  expect(materialise(journal.state)).toEqual(before)
})
