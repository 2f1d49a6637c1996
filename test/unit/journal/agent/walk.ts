import type { IdPrefix } from '../../../../lib/ids.ts'
import type { AgentRecord } from '../../../../lib/journal/agent/envelope.ts'
import type { Message } from '../../../../lib/journal/agent/messages.ts'
import type { Materialised, ToolCall } from '../../../../lib/journal/agent/projection.ts'
import type { AgentFact } from '../../../../lib/journal/agent/records.ts'
import { apply } from '../../../../lib/journal/agent/reducer.ts'
import { AgentReplayError } from '../../../../lib/journal/agent/replay-error.ts'
import { type AgentState, materialise } from '../../../../lib/journal/agent/state.ts'
import { typeIdOf } from '../../../../lib/journal/agent/uuid.ts'

/** The n-th id of its kind: the same in every run. */
export const id = (prefix: IdPrefix, n: number): string =>
  typeIdOf(prefix, `0195a0b1-5e00-7000-8000-${n.toString(16).padStart(12, '0')}`)

export const session = id('ses', 1)

/** A time in seconds after the start of all walks. */
export const time = (seconds: number): string =>
  new Date(Date.UTC(2026, 6, 23) + seconds * 1000).toISOString()

/** A record behind a state, on its active branch. */
export const recordAfter = (
  state: AgentState,
  fact: AgentFact,
  seconds = state.tail_sequence + 1,
): AgentRecord => {
  const sequence = state.tail_sequence + 1
  const { active_branch_id } = materialise(state)
  const isOfBranches = fact.type === 'branch_created' || fact.type === 'active_branch_changed'
  const branch = isOfBranches ? fact.data.branch_id : active_branch_id
  const place = { sequence, id: id('evt', sequence), session_id: session, time: time(seconds) }
  return { ...place, branch: branch === null || branch === 'main' ? branch : `${branch}`, ...fact }
}

export const created = (branch: 'main' | null = 'main'): AgentRecord => ({
  ...{ sequence: 0, id: id('evt', 0), session_id: session, branch, time: time(0) },
  type: 'session_created',
  data: { profile_id: 'minimal-assistant' },
})

export const follow = (state: AgentState, ...facts: AgentFact[]): AgentState =>
  facts.reduce((before, fact) => apply(before, recordAfter(before, fact)), state)

export const start = (branch: 'main' | null = 'main'): AgentState => apply(null, created(branch))

const text = (said: string) => [{ type: 'text' as const, text: said }]
const failure = { code: 'tool_execution_failed', message: 'it failed' }

export const userSays = (n: number): Message => ({
  ...{ type: 'user', id: id('msg', n), timestamp: time(n), content: text(`message ${n}`) },
})

export const assistantCalls = (n: number, calls: readonly number[]): Message => ({
  ...{ type: 'assistant', id: id('msg', n), timestamp: time(n), stop_reason: 'tool_use' },
  content: calls.map((call) => ({
    ...{ type: 'tool_call', tool_call_id: id('call', call), tool_name: 'read_file' },
    arguments: { n: call },
  })),
})

const summary = (n: number): Message => ({
  ...{ type: 'assistant', id: id('msg', n), timestamp: time(n), stop_reason: 'completed' },
  content: text(`summary ${n}`),
})

export const resultOf = (n: number, { tool_call_id, tool_name, execution }: ToolCall): Message => ({
  ...{ type: 'tool_result', id: id('msg', n), timestamp: time(n), tool_call_id, tool_name },
  ...(execution.status === 'finished'
    ? {
        content: execution.content,
        is_error: execution.is_error,
        ...(execution.error ? { error: execution.error } : {}),
      }
    : { content: text('nothing yet'), is_error: false }),
})

/** One throw: which move, and what it picks among what is there. */
export type Dice = { readonly move: number; readonly pick: number; readonly later: number }

const pickOf = <Value>(values: readonly Value[], pick: number): Value | undefined =>
  values[pick % Math.max(values.length, 1)]

type Scene = { readonly state: Materialised; readonly n: number; readonly dice: Dice; readonly now: number }

const callIn = ({ state, dice }: Scene): string =>
  pickOf(Object.keys(state.tool_calls), dice.pick) ?? id('call', 1)

const declaredIn = ({ state, dice }: Scene) => {
  const blocks = state.messages.flatMap((message) =>
    message.type === 'assistant' ? message.content.filter((block) => block.type === 'tool_call') : [],
  )
  return pickOf(blocks, dice.pick)
}

const odd = ({ pick }: Dice): boolean => pick % 2 === 1
const branchIn = ({ state, dice }: Scene): string => pickOf(Object.keys(state.branches), dice.pick) ?? 'main'
const approvalIn = ({ state, dice }: Scene): string =>
  pickOf(Object.keys(state.pending_approvals), dice.pick) ?? id('apr', 1)

/** What may be tried next; most throws fit, and some are refused. */
const moves: readonly ((scene: Scene) => AgentFact)[] = [
  ({ n }) => ({ type: 'message_committed', data: { message: userSays(n) } }),
  ({ n, dice }) => ({
    type: 'message_committed',
    data: { message: assistantCalls(n, odd(dice) ? [n] : [n, n + 1_000_000]) },
  }),
  (scene) => {
    const { tool_call_id = id('call', 1), tool_name = 'x', arguments: given = {} } = declaredIn(scene) ?? {}
    return { type: 'tool_call_requested', data: { tool_call_id, tool_name, arguments: given } }
  },
  (scene) => ({
    type: 'policy_decision_recorded',
    data: {
      tool_call_id: callIn(scene),
      decision: pickOf(['allow', 'require_approval', 'deny'] as const, scene.dice.later) ?? 'allow',
    },
  }),
  (scene) => ({
    type: 'approval_requested',
    data: {
      ...{ approval_id: id('apr', scene.n), tool_call_id: callIn(scene) },
      expires_at: time(scene.now + 1 + (scene.dice.later % 20)),
    },
  }),
  (scene) => ({
    type: 'approval_resolved',
    data: { approval_id: approvalIn(scene), decision: { type: odd(scene.dice) ? 'allow_once' : 'deny' } },
  }),
  (scene) => ({ type: 'approval_expired', data: { approval_id: approvalIn(scene) } }),
  (scene) => ({
    type: 'tool_execution_started',
    data: {
      ...{ tool_call_id: callIn(scene), execution_target: 'native' },
      idempotency: odd({ ...scene.dice, pick: scene.dice.later }) ? 'idempotent' : 'non_idempotent',
    },
  }),
  (scene) => ({
    type: 'tool_execution_finished',
    data: {
      ...{ tool_call_id: callIn(scene), content: text('ended') },
      ...(scene.dice.later % 2 === 1 ? { is_error: true, error: failure } : { is_error: false }),
    },
  }),
  (scene) => ({
    type: 'tool_execution_interrupted',
    data: { tool_call_id: callIn(scene), reason: 'the process died' },
  }),
  (scene) => ({
    type: 'tool_call_resolved',
    data: {
      ...{ tool_call_id: callIn(scene), by: 'ada', reason: 'looked' },
      ...(scene.dice.later % 2 === 1
        ? { decision: 'reoffered' }
        : { decision: 'failed', content: text('unknown'), error: failure }),
    },
  }),
  (scene) => {
    const call = scene.state.tool_calls[callIn(scene)]
    return {
      type: 'message_committed',
      data: { message: call ? resultOf(scene.n, call) : userSays(scene.n) },
    }
  },
  ({ n }) => ({ type: 'configuration_changed', data: { profile_id: `profile-${n}` } }),
  ({ n, dice }) => ({
    type: 'turn_checkpointed',
    data: {
      ...{ run_id: id('run', dice.pick % 3), turn_id: id('turn', n) },
      next_action: odd(dice) ? 'model_request' : 'finish_run',
    },
  }),
  ({ n, dice }) => ({
    type: 'run_interrupted',
    data: { run_id: id('run', dice.pick % 3), turn_id: id('turn', n), reason: 'it broke' },
  }),
  ({ dice }) => ({ type: 'run_cancelled', data: { run_id: id('run', dice.pick % 3) } }),
  ({ n, dice }) => ({
    type: 'session_compacted',
    data: { summary: summary(n), compacted_through_record_id: id('evt', dice.pick % n) },
  }),
  (scene) => ({
    type: 'branch_created',
    data: {
      ...{ source_branch_id: branchIn(scene), branch_id: id('brn', 100 + scene.n) },
      from_record_id: id('evt', scene.dice.later % scene.n),
    },
  }),
  (scene) => ({ type: 'active_branch_changed', data: { branch_id: branchIn(scene) } }),
]

export const moveCount = moves.length

/** The record that a throw proposes; it may be refused. */
export const proposal = (state: AgentState, dice: Dice): AgentRecord => {
  const n = state.tail_sequence + 1
  const now = n + (dice.later % 7)
  const move = moves[dice.move % moves.length]
  if (!move) throw new RangeError('no such move')
  return recordAfter(state, move({ state: materialise(state), n, dice, now }), now)
}

/** Whether a record is accepted: the state it leads to, or null. */
export const attempt = (state: AgentState, record: AgentRecord): AgentState | null => {
  try {
    return apply(state, record)
  } catch (error) {
    if (error instanceof AgentReplayError) return null
    throw error
  }
}

/** A legal history: every throw that is accepted, with the states it went through. */
export const walk = (throws: readonly Dice[]): { records: AgentRecord[]; states: AgentState[] } => {
  const records = [created()]
  const states = [start()]
  for (const dice of throws) {
    const state = states.at(-1)
    if (!state) break
    const record = proposal(state, dice)
    const next = attempt(state, record)
    if (!next) continue
    records.push(record)
    states.push(next)
  }
  return { records, states }
}
