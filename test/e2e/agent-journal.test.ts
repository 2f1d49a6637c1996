import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isAgentFactType } from '../../lib/journal/agent/records.ts'
import { scripted } from './engines.ts'
import { useStack } from './stack.ts'

const used = useStack()

const library = (file: string) => JSON.stringify(join(import.meta.dirname, '..', '..', 'lib', file))

/** What every run of the engine has at hand: the write order, ids, and the tools' answers, of which none may be a refusal. */
const writing = `
const order = await import(${library('journal/agent/write-order.ts')})
const { newId } = await import(${library('ids.ts')})
const now = () => new Date().toISOString()
const must = (answer) => {
  if (answer.status !== 200) throw new Error(JSON.stringify(answer))
  return answer
}
const append = async (records) => must(await tool('append_records', { records }))
const turn = { run_id: newId('run'), turn_id: newId('turn') }
const message = (type, more) => ({ type, id: newId('msg'), timestamp: now(), ...more })
const text = (words) => [{ type: 'text', text: words }]
`

/** A whole turn with one call that comes to its end, and one in the middle of which the engine dies. */
const first = `
await append([{ type: 'message_committed', data: { message: message('user', { content: text('Be done') }) } }])
const block = (path) => ({ type: 'tool_call', tool_call_id: newId('call'), tool_name: 'write_file', arguments: { path } })
const asked = message('assistant', { content: [block('notes'), block('done')], stop_reason: 'tool_use' })
const [one, two] = asked.content.map((call) => call.tool_call_id)
const start = (tool_call_id) => ({ tool_call_id, execution_target: 'native', idempotency: 'non_idempotent' })
await append(order.toolsAsked(asked))
await append(order.toolAllowed(start(one)))
writeFileSync('notes', 'first')
const ending = { id: newId('msg'), timestamp: now(), tool_call_id: one, tool_name: 'write_file' }
await append(order.toolEnded({ message: ending, result: { is_error: false, content: text('written') } }))
await append(order.toolAllowed(start(two)))
process.kill(process.pid, 'SIGKILL')
`

/** Goes on from nothing but what the journal tells. */
const second = `
const before = must(await tool('journal_state'))
const [open] = before.calls
if (before.new_run || before.calls.length !== 1 || open.situation !== 'outcome_unknown')
  throw new Error(JSON.stringify(before))
await append([{ type: 'tool_execution_interrupted', data: { tool_call_id: open.tool_call_id, reason: 'the engine died' } }])
const interrupted = must(await tool('journal_state')).calls[0]
if (!interrupted.may.includes('resolve_as_succeeded')) throw new Error(JSON.stringify(interrupted))
// The file tells that its effect had not come about; it is written now and the call resolved by that.
writeFileSync(interrupted.arguments.path, 'yes')
const told = { id: newId('msg'), timestamp: now(), tool_call_id: open.tool_call_id, tool_name: open.tool_name }
const result = { is_error: false, content: text('written after all') }
await append(order.interruptionResolved({ message: told, result }, 'engine', 'the file was looked for'))
await append(order.batchDone(turn))
const after = must(await tool('journal_state'))
if (!after.new_run || after.run !== 'died_between_turns') throw new Error(JSON.stringify(after))
const last = message('assistant', { content: text('Done, after ' + after.messages.length + ' messages'), stop_reason: 'completed' })
await append(order.answered({ ...turn, turn_id: newId('turn') }, last))
`

test('an engine that dies in the middle of a turn goes on from the journal when it is started again', async () => {
  const engine_command = scripted(`${writing}\nif (run === 1) {${first}} else {${second}}`)
  const { id } = await used.begin({ engine_command })
  const session = await used.api.untilGate(id, ['approval', 'validate'])
  expect(session).toMatchObject({ state: 'needs_approval' })
  const entries = await used.api.journal(id)
  const records = entries.filter(({ type }) => isAgentFactType(type))
  expect(records.map(({ type }) => type)).toEqual([
    ...['message_committed', 'message_committed', 'tool_call_requested', 'tool_call_requested'],
    ...['policy_decision_recorded', 'tool_execution_started', 'tool_execution_finished', 'message_committed'],
    ...['policy_decision_recorded', 'tool_execution_started'],
    ...['tool_execution_interrupted', 'tool_call_resolved', 'message_committed', 'turn_checkpointed'],
    ...['message_committed', 'turn_checkpointed'],
  ])
  expect(records.at(-2)).toMatchObject({
    ...{ kind: 'record', branch: 'main', actor: { kind: 'worker' } },
    data: { message: { content: [{ text: 'Done, after 3 messages' }] } },
  })
  // The end of a worker may be told between the two looks.
  expect(await used.api.verify(id)).toMatchObject({ ok: true })

  // Between runs a person goes back to before the calls; the journal still proves.
  const from_record_id = records[0]?.id
  const forked = await used.api.call('POST', `/v1/sessions/${id}/branches`, { from_record_id })
  expect(forked.status).toBe(201)
  await used.api.approve(id)
  expect(await used.api.untilEnd(id)).toMatchObject({ state: 'merged' })
  expect(await used.api.verify(id)).toMatchObject({ ok: true })
})
