import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { AgentRecord } from '../../../../lib/journal/agent/envelope.ts'
import { readRecord } from '../../../../lib/journal/agent/envelope.ts'
import { modelMessageSchema } from '../../../../lib/journal/agent/model-message.ts'
import type { AgentFact } from '../../../../lib/journal/agent/records.ts'
import { type OpenCall, recoveryOf } from '../../../../lib/journal/agent/recovery.ts'
import { apply, replay } from '../../../../lib/journal/agent/reducer.ts'
import { AgentReplayError } from '../../../../lib/journal/agent/replay-error.ts'
import { restore, serialise, serialisedSchema } from '../../../../lib/journal/agent/serialise.ts'
import { type AgentState, activeView, materialise, project } from '../../../../lib/journal/agent/state.ts'
import { modelMessages } from '../../../../lib/journal/agent/transcript.ts'
import {
  attempt,
  type Dice,
  follow,
  id,
  moveCount,
  proposal,
  recordAfter,
  resultOf,
  time,
  walk,
} from './walk.ts'

const dice = fc.record({
  move: fc.nat({ max: moveCount - 1 }),
  pick: fc.nat({ max: 1000 }),
  later: fc.nat({ max: 1000 }),
})
/** Whole roads of a call, or hardly any would come to its end: run, asked about, run out of time, interrupted. */
const roads = [
  [1, 2, 2, 3, 3, 7, 7, 8, 8, 11, 11],
  [1, 2, 3, 4, 5, 7, 8, 11],
  [1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 6, 8, 11],
  [1, 2, 3, 7, 9, 10, 7, 8, 11],
]
const road: fc.Arbitrary<Dice[]> = fc
  .record({ moves: fc.constantFrom(...roads), pick: fc.nat({ max: 1000 }), later: fc.nat({ max: 1000 }) })
  .map(({ moves, pick, later }) => moves.map((move) => ({ move, pick, later })))
const history = fc
  .array(fc.oneof({ weight: 3, arbitrary: dice.map((one) => [one]) }, { weight: 1, arbitrary: road }), {
    maxLength: 40,
  })
  .map((pieces) => pieces.flat())

const text = (state: AgentState): string => JSON.stringify(serialise(state))
const reborn = (state: AgentState): AgentState => restore(serialisedSchema.parse(JSON.parse(text(state))))
const rest = (state: AgentState, records: readonly AgentRecord[]): AgentState =>
  records.slice(state.tail_sequence + 1).reduce(apply, state)

it('a history folds the same in one go, in pieces, and from every prefix that was serialised', () => {
  fc.assert(
    fc.property(history, (throws) => {
      const { records, states } = walk(throws)
      const whole = materialise(replay(records))
      for (const state of states) {
        const again = rest(reborn(state), records)
        expect(materialise(again)).toEqual(whole)
      }
      expect(text(replay(records))).toBe(text(rest(reborn(states[0] ?? replay(records)), records)))
    }),
    { numRuns: 80 },
  )
})

it('a state stays what it was, whatever follows it, and whatever else is made to follow it', () => {
  fc.assert(
    fc.property(history, dice, (throws, other) => {
      const { records, states } = walk(throws)
      const folded = states.map((_, last) => text(replay(records.slice(0, last + 1))))
      expect(states.map(text)).toEqual(folded)
      for (const state of states) attempt(state, proposal(state, other))
      expect(states.map(text)).toEqual(folded)
    }),
    { numRuns: 80 },
  )
})

it('a refused record leaves the state as it was', () => {
  fc.assert(
    fc.property(history, fc.array(dice, { minLength: 20, maxLength: 20 }), (throws, tried) => {
      const { states } = walk(throws)
      const state = states.at(-1)
      if (!state) throw new Error('a walk has a state')
      const before = text(state)
      for (const one of tried) if (!attempt(state, proposal(state, one))) expect(text(state)).toBe(before)
    }),
    { numRuns: 100 },
  )
})

it('walks reach what they are about', () => {
  const seen = new Set<string>()
  const walks = fc.sample(history, { numRuns: 300, seed: 7 }).map(walk)
  for (const { records, states } of walks) {
    for (const { type } of records) seen.add(type)
    for (const state of states.slice(-1))
      for (const call of Object.values(materialise(state).tool_calls)) {
        seen.add(call.execution.status)
        if (call.result_message_id) seen.add('answered')
        if (call.approval_decision) seen.add(call.approval_decision)
      }
  }
  const facts = ['approval_expired', 'tool_call_resolved', 'branch_created', 'tool_execution_interrupted']
  const states = ['started', 'finished', 'answered', 'allow_once', 'deny', 'expired']
  expect([...seen]).toEqual(expect.arrayContaining([...facts, ...states, 'session_compacted']))
})

const laneProjections = (state: AgentState): string[] =>
  state.store.lanes
    .map((lane, index) => ({ lane, index }))
    .filter(({ lane }) => lane.created <= state.tail_sequence)
    .map(({ index }) => JSON.stringify(project({ store: state.store, lane: index, at: state.tail_sequence })))

it('what is said on one branch changes no other', () => {
  fc.assert(
    fc.property(history, (throws) => {
      const { states } = walk(throws)
      for (const [place, after] of states.entries()) {
        const before = states[place - 1]
        if (!before) continue
        const was = laneProjections(before)
        const active = activeView(after).lane
        laneProjections(after).forEach((now, lane) => {
          if (lane !== active && lane < was.length) expect(now).toBe(was[lane])
        })
      }
    }),
    { numRuns: 100 },
  )
})

/** The record's fact, if it is one that uses an id for the first time. */
const firstUse = (record: AgentRecord): AgentFact[] => {
  switch (record.type) {
    case 'message_committed':
      return [{ type: record.type, data: record.data }]
    case 'approval_requested':
      return [{ type: record.type, data: record.data }]
    case 'tool_call_requested':
      return [{ type: record.type, data: record.data }]
    case 'session_compacted':
      return [{ type: record.type, data: record.data }]
    default:
      return []
  }
}

it('an id that was used is refused on every branch', () => {
  fc.assert(
    fc.property(history, (throws) => {
      const { records, states } = walk(throws)
      const state = states.at(-1)
      if (!state) throw new Error('a walk has a state')
      for (const branch of Object.keys(materialise(state).branches)) {
        const there = follow(reborn(state), { type: 'active_branch_changed', data: { branch_id: branch } })
        for (const fact of records.flatMap(firstUse))
          expect(() => apply(there, recordAfter(there, fact))).toThrow(AgentReplayError)
      }
    }),
    { numRuns: 100 },
  )
})

/** What somebody who takes up an open call writes next. */
const wayOut = (state: AgentState, { tool_call_id, may }: OpenCall): AgentFact => {
  const n = state.tail_sequence + 1
  const { tool_calls, messages, pending_approvals } = materialise(state)
  const call = tool_calls[tool_call_id]
  const failed = {
    content: [{ type: 'text' as const, text: 'no' }],
    error: { code: 'gone', message: 'gone' },
  }
  const block = messages
    .flatMap((message) => (message.type === 'assistant' ? message.content : []))
    .find((one) => one.type === 'tool_call' && one.tool_call_id === tool_call_id)
  switch (may[0]) {
    case 'request':
      if (block?.type !== 'tool_call') throw new Error('it is declared')
      return {
        type: 'tool_call_requested',
        data: { tool_call_id, tool_name: block.tool_name, arguments: block.arguments },
      }
    case 'decide_policy':
      return { type: 'policy_decision_recorded', data: { tool_call_id, decision: 'deny' } }
    case 'ask':
      return {
        type: 'approval_requested',
        data: { approval_id: id('apr', 5000 + n), tool_call_id, expires_at: time(1e8 + n + 1) },
      }
    case 'expire_approval':
      return { type: 'approval_expired', data: { approval_id: call?.approval_id ?? '' } }
    case 'resolve_approval':
      expect(pending_approvals).toHaveProperty(call?.approval_id ?? '')
      return {
        type: 'approval_resolved',
        data: { approval_id: call?.approval_id ?? '', decision: { type: 'deny' } },
      }
    case 'start':
      return {
        type: 'tool_execution_started',
        data: { tool_call_id, execution_target: 'native', idempotency: 'idempotent' },
      }
    case 'close_with_error':
      return { type: 'tool_execution_finished', data: { tool_call_id, is_error: true, ...failed } }
    case 'record_interrupted':
      return { type: 'tool_execution_interrupted', data: { tool_call_id, reason: 'nobody was left' } }
    case 'resolve_as_failed':
      return {
        type: 'tool_call_resolved',
        data: { tool_call_id, decision: 'failed', by: 'ada', reason: 'looked', ...failed },
      }
    case 'commit_result':
      if (!call) throw new Error('it was requested')
      return { type: 'message_committed', data: { message: resultOf(5000 + n, call) } }
    default:
      throw new Error(`no way out of ${may}`)
  }
}

it('from every state the way to a new run is open', () => {
  fc.assert(
    fc.property(history, (throws) => {
      for (let state of walk(throws).states.slice(-3)) {
        for (let steps = 0; ; steps++) {
          const seconds = 1e8 + state.tail_sequence + 1
          const { new_run, calls } = recoveryOf(state, time(seconds))
          const [open] = calls
          expect(new_run).toBe(open === undefined)
          if (!open) break
          expect(steps).toBeLessThan(500)
          state = apply(state, recordAfter(state, wayOut(state, open), seconds))
        }
      }
    }),
    { numRuns: 100 },
  )
})

it('every record of a walk is one that the schemas accept as it is', () => {
  fc.assert(
    fc.property(history, (throws) => {
      for (const record of walk(throws).records) expect(readRecord(record)).toEqual({ ok: true, record })
    }),
    { numRuns: 80 },
  )
})

it('a transcript closes every call right behind it, in order, and is what a model can be given', () => {
  fc.assert(
    fc.property(history, (throws) => {
      for (const state of walk(throws).states) {
        const messages = modelMessages(activeView(state))
        messages.forEach((message, place) => {
          modelMessageSchema.parse(message)
          if (message.role !== 'assistant') return
          const calls = message.content.flatMap((part) =>
            part.type === 'tool-call' ? [part.toolCallId] : [],
          )
          const next = messages[place + 1]
          const answers = next?.role === 'tool' ? next.content.map((part) => part.toolCallId) : []
          expect(answers).toEqual(calls)
        })
        const results = messages.filter(({ role }) => role === 'tool').length
        const asked = messages.filter(
          ({ role, content }) => role === 'assistant' && content.some((part) => part.type === 'tool-call'),
        ).length
        expect(results).toBe(asked)
      }
    }),
    { numRuns: 80 },
  )
})
