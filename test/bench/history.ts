import type { Message } from '../../lib/journal/agent/messages.ts'
import { canonical, emptyHead, sha256 } from '../../lib/journal/entry.ts'
import { type Fact, isAgentFact, isRecord } from '../../lib/journal/facts.ts'
import { aResult, creation, sha } from '../support/sessions.ts'

/** `realistic` is 5 % lifecycle, 55 % events and 40 % the agent's turns; `messages` is the agent's messages alone. */
export type Mix = 'realistic' | 'messages'

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'
const begin = Date.UTC(2030, 0, 1)

/** Numbers that look random and are the same for every run with one seed (mulberry32). */
const dice = (seed: number) => {
  let state = seed
  return (below: number): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

const base32 = (value: number, length: number): string => {
  let text = ''
  for (let rest = value; text.length < length; rest = Math.floor(rest / 32))
    text = `${alphabet[rest % 32]}${text}`
  return text
}

const words = 'the parser reads every line of a file and then "quotes" what it can\\not keep\n'.split(' ')
/** Some texts hold characters that take more than one byte, in the journal as well as in memory. */
const signs = ['größer', '→', '✓']

/** What a journal is made of: ids, times and texts, each drawn from one seed. */
const material = (seed: number) => {
  const roll = dice(seed)
  const texts = Array.from({ length: 256 }, (_, n) => {
    const said = Array.from({ length: 10 + roll(60) }, () => words[roll(words.length)])
    return [...said, ...(n % 8 === 0 ? signs : [])].join(' ')
  })
  let now = begin
  return {
    roll,
    text: (): string => texts[roll(texts.length)] ?? '',
    time: (): string => new Date(now++).toISOString(),
    /** A TypeID of a UUIDv7 with the present time. */
    id: (prefix: string): string =>
      `${prefix}_${base32(now, 10)}e${base32(roll(1024), 2)}8${base32(roll(2 ** 30), 6)}${base32(roll(2 ** 30), 6)}`,
  }
}
type Material = ReturnType<typeof material>

const user = ({ id, time, text }: Material): Message => ({
  content: [{ text: text(), type: 'text' }],
  ...{ id: id('msg'), timestamp: time(), type: 'user' },
})

const assistant = ({ id, time, text }: Material): Message => ({
  content: [{ text: text(), type: 'text' }],
  ...{ id: id('msg'), stop_reason: 'completed', timestamp: time(), type: 'assistant' },
})

/** A fact, and the id of its entry where another fact speaks of it. */
type Placed = { readonly fact: Fact; readonly id?: string; readonly branch?: string }

const say = (message: Message): Placed => ({ fact: { type: 'message_committed', data: { message } } })

/** One call from its declaration to its result, by the write order. */
function* toolCall(from: Material): Generator<Placed> {
  const { id, time, text, roll } = from
  const tool_call_id = id('call')
  const tool_name = 'read_file'
  const given = { path: `lib/${text().slice(0, 12)}/${roll(1000)}.ts` }
  const content = [{ text: text(), type: 'text' as const }]
  yield say({
    content: [
      { text: text(), type: 'text' },
      { arguments: given, tool_call_id, tool_name, type: 'tool_call' },
    ],
    ...{ id: id('msg'), stop_reason: 'tool_use', timestamp: time(), type: 'assistant' },
  })
  yield { fact: { type: 'tool_call_requested', data: { arguments: given, tool_call_id, tool_name } } }
  yield { fact: { type: 'policy_decision_recorded', data: { decision: 'allow', tool_call_id } } }
  yield {
    fact: {
      type: 'tool_execution_started',
      data: { execution_target: 'native', idempotency: 'idempotent', tool_call_id },
    },
  }
  yield { fact: { type: 'tool_execution_finished', data: { content, is_error: false, tool_call_id } } }
  yield say({
    content,
    ...{ id: id('msg'), is_error: false, timestamp: time(), tool_call_id, tool_name, type: 'tool_result' },
  })
}

/** The agent at work: turns without end, now and then compacted, and now and then on a branch for a while. */
function* turns(from: Material): Generator<Placed> {
  const { id, roll } = from
  let branch = 'main'
  for (let turn = 1; ; turn++) {
    const place = { run_id: id('run'), turn_id: id('turn') }
    yield say(user(from))
    yield* toolCall(from)
    if (roll(2) === 0) yield* toolCall(from)
    yield say(assistant(from))
    const checkpoint = id('evt')
    yield {
      ...{ id: checkpoint },
      fact: { type: 'turn_checkpointed', data: { next_action: 'finish_run', ...place } },
    }
    if (turn % 250 === 0)
      yield {
        fact: {
          type: 'session_compacted',
          data: { compacted_through_record_id: checkpoint, summary: assistant(from) },
        },
      }
    if (turn % 500 === 100) {
      const fork = id('brn')
      const data = { branch_id: fork, from_record_id: checkpoint, source_branch_id: branch }
      yield { branch: fork, fact: { type: 'branch_created', data } }
      branch = fork
    } else if (turn % 500 === 150) branch = 'main'
    else continue
    yield { branch, fact: { type: 'active_branch_changed', data: { branch_id: branch } } }
  }
}

function* messages(from: Material): Generator<Placed> {
  for (;;) yield say(from.roll(2) === 0 ? user(from) : assistant(from))
}

const event = ({ roll, text }: Material): Fact => {
  const dice = roll(10)
  if (dice === 0) return { type: 'check_started', data: { name: 'unit' } }
  if (dice === 1) return { type: 'check_completed', data: { result: aResult({ output_tail: text() }) } }
  return { type: 'engine_output', data: { iteration: 1, omitted_bytes: 0, text: text() } }
}

const tree = (digit: string) => ({ commit: sha('c'), tree: sha(digit) })

/** The road from one iteration of the engine to the next. */
const round = ({ id }: Material, n: number): Fact[] => [
  { type: 'iteration_started', data: { max: 8, n } },
  {
    type: 'checkpoint_created',
    data: { ...tree('d'), bundle: null, bundle_sha256: null, id: id('chk').slice(4) },
  },
  { type: 'step_completed', data: { next: 'Validate', step: 'Code', trigger: 'engine_finished' } },
  {
    type: 'contract_evaluated',
    data: {
      ...{ artifact: 'results.json', green: false, iteration: n, on: 'worktree', tree_edited: false },
      results: [aResult({ verdict: 'failed' })],
    },
  },
  {
    type: 'verdict_reached',
    data: { counted: true, decided_by_layer: 2, failed: ['unit'], green: false, not_run: [], reason: 'red' },
  },
  { type: 'step_completed', data: { next: 'Code', step: 'Decide', trigger: 'red' } },
]

function* realistic(from: Material): Generator<Placed> {
  const agent = turns(from)
  let rounds = 0
  let lifecycle: Fact[] = []
  for (;;) {
    const dice = from.roll(100)
    if (dice < 40) yield agent.next().value
    else if (dice < 95) yield { fact: event(from) }
    else {
      if (lifecycle.length === 0) lifecycle = round(from, ++rounds)
      const fact = lifecycle.shift()
      if (fact) yield { fact }
    }
  }
}

function* placed(mix: Mix, from: Material, session: string): Generator<Placed> {
  yield { fact: creation(session, 'team') }
  yield* mix === 'realistic' ? realistic(from) : messages(from)
}

/**
 * A journal of a session, line by line without newlines: legal, chained and canonical, and the same for one seed. Only
 * what is asked for is made, so that a journal of any length takes no room.
 */
export function* history(mix: Mix, entries: number, seed = 1): Generator<string> {
  const from = material(seed)
  const session = from.id('ses')
  let previous = emptyHead.hash
  let sequence = 0
  let active = 'main'
  for (const { fact, id, branch } of placed(mix, from, session)) {
    const ofAgent = isAgentFact(fact)
    if (ofAgent) active = fact.type === 'active_branch_changed' ? fact.data.branch_id : active
    const head = `{"actor":{"id":"wrk_1","kind":"worker"},"branch":"${ofAgent ? (branch ?? active) : 'main'}","data":${canonical(fact.data)},`
    const rest = `"id":"${id ?? from.id('evt')}","kind":"${isRecord(fact) ? 'record' : 'event'}","previous_hash":"${previous}","sequence":${sequence},"session_id":"${session}","time":"${from.time()}","type":"${fact.type}"}`
    previous = sha256(head + rest)
    yield `${head}"hash":"${previous}",${rest}`
    sequence += 1
    if (sequence === entries) return
  }
}
