import { expect, it } from 'vitest'
import { newId } from '../../../lib/ids.ts'
import { chain, emptyHead } from '../../../lib/journal/entry.ts'
import { type Fact, factSchema, isRecord } from '../../../lib/journal/facts.ts'
import { foldState, type JournalState } from '../../../lib/journal/state.ts'
import { at, creation, system } from '../../support/sessions.ts'

/** The 27 events of spec/coder-session.md 16 by their names there, each with the members that it names. */
const told: Record<string, readonly string[]> = {
  state_changed: ['from', 'to'],
  contract_proposed: ['contract'],
  engine_selected: ['engine', 'reason'],
  engine_fallback: ['from', 'to', 'reason'],
  model_fallback: ['from', 'to', 'reason'],
  iteration_started: ['n', 'max'],
  inference_waiting: ['elapsed_secs'],
  operator_guidance: ['text', 'status'],
  inference_retry: ['model', 'attempt', 'reason', 'backoff_ms'],
  auth_required: ['message', 'wait_secs'],
  budget_exhausted: ['reason', 'elapsed_secs', 'iterations'],
  invocation_retried: ['hypothesis', 'reason', 'retries_remaining'],
  plan_text: ['text'],
  tool_call: ['tool', 'params_preview'],
  tool_result: ['tool', 'ok', 'preview'],
  check_started: ['name'],
  check_completed: ['result'],
  contract_baseline: ['results', 'gates_nothing'],
  external_event: ['raw'],
  finding_proposed: ['finding'],
  finding_resolved: ['accepted', 'comment'],
  diff_ready: ['review', 'stat'],
  user_input_requested: ['prompt'],
  user_input_expired: ['prompt', 'waited_secs'],
  contract_revision_rejected: ['request', 'reason'],
  merge_completed: ['branch'],
  error: ['message'],
}

const members = new Map(
  factSchema.options.map(({ shape }): [string, string[]] => [
    shape.type.value,
    'shape' in shape.data ? Object.keys(shape.data.shape) : [],
  ]),
)

it.each(Object.entries(told))(
  '%s is a fact of the journal, with what the spec has it tell',
  (type, names) => {
    expect(members.get(type)).toEqual(expect.arrayContaining([...names]))
  },
)

const events: Fact[] = [
  { type: 'engine_fallback', data: { from: 'native', to: 'external:command', reason: 'no model' } },
  { type: 'model_fallback', data: { from: 'large', to: 'small', reason: 'overloaded' } },
  { type: 'inference_waiting', data: { elapsed_secs: 12.5 } },
  { type: 'inference_retry', data: { model: 'large', attempt: 2, reason: '529', backoff_ms: 500 } },
  { type: 'auth_required', data: { message: 'sign in again', wait_secs: null } },
  { type: 'plan_text', data: { text: 'First the test.' } },
  { type: 'tool_call', data: { tool: 'shell', params_preview: 'npm test' } },
  { type: 'tool_result', data: { tool: 'shell', ok: false, preview: '1 failed' } },
  { type: 'external_event', data: { raw: { kind: 'thinking', depth: [1, { of: null }] } } },
]

it('what people only watch is an event, and a replay comes to the same without it', () => {
  const id = newId('ses')
  const stamp = { sessionId: id, time: at(0), actor: system }
  expect(events.filter(isRecord)).toEqual([])
  const { entries } = chain(emptyHead, [creation(id, 'team'), ...events], stamp)
  const [first] = entries
  if (!first) throw new Error('a journal has a first entry')
  const whole = entries.reduce<JournalState | null>(foldState, null)
  expect(whole?.document).toEqual(foldState(null, first).document)
  expect(whole?.head.sequence).toBe(events.length)
})

it.each([
  ['a negative wait', { type: 'inference_waiting', data: { elapsed_secs: -1 } }],
  [
    'an attempt before the first',
    { type: 'inference_retry', data: { model: 'm', attempt: 0, reason: '', backoff_ms: 0 } },
  ],
  ['a member nobody knows', { type: 'plan_text', data: { text: 'x', more: 1 } }],
  ['a type nobody knows', { type: 'something_else', data: {} }],
])('refuses %s', (_, fact) => {
  expect(factSchema.safeParse(fact).success).toBe(false)
})
