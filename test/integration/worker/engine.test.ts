import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { liveProcesses } from '../../../lib/process/live.ts'
import { startOf } from '../../../lib/process/stat.ts'
import { temporaryFolder } from '../../repositories.ts'
import { startDaemon } from '../../support/daemon.ts'
import { aCommand, contractOf } from './commands.ts'
import { eventually, exists, outcome, startSession } from './support.ts'

const tool = (name: string, body: unknown) =>
  `curl -sS "$GATEHOUSE_TOOLS_URL/${name}" -H "Authorization: Bearer $GATEHOUSE_TOOLS_TOKEN" -d '${JSON.stringify(body)}'`

const unknownUsage = { input_tokens: null, output_tokens: null, cost_usd: null, complete: false }

test('what an engine reports through its tools is in the result, each of it for what it is', async () => {
  const session = await startSession({ steering_messages: ['in the prompt'] })
  session.api.state.guidance = ['in the prompt', 'came later', 'last']
  const start = await session.prepare()
  const seen = join(session.folder, 'seen')
  const nomination = { kind: 'premise_wrong', summary: 'It is right', evidence: 'a.txt says so' }
  const engine = [
    'cat > prompt-was',
    `${tool('guidance', {})} > ${seen}`,
    tool('report_no_change', nomination),
    tool('report_usage', { request_id: 'a', input_tokens: 3, output_tokens: 4, cost_usd: 0.5 }),
    tool('report_usage', { request_id: 'b', input_tokens: 5 }),
    tool('report_status', { status: 'rate_limited', reset_at: '2030-02-01T00:00:00Z' }),
  ].join('\n')
  const result = outcome(await session.run('Code', { ...start, engine_command: engine }), 'Code')
  expect(result).toMatchObject({
    ...{ status: 'finished', changed: true, touched: true, guidance_applied: 3, nomination },
    report: { status: 'rate_limited', reason: '', reset_at: '2030-02-01T00:00:00.000Z' },
    usage: { input_tokens: 8, output_tokens: 4, cost_usd: 0.5, complete: false },
  })
  expect(JSON.parse(readFileSync(seen, 'utf8'))).toEqual({
    messages: [
      { id: '1', text: 'came later' },
      { id: '2', text: 'last' },
    ],
  })
})

test('an engine that reports nothing has used an unknown amount, and only what its prompt held was applied', async () => {
  const session = await startSession({ steering_messages: ['one', 'two'] })
  session.api.state.guidance = ['one', 'two', 'three']
  const start = await session.prepare()
  const result = outcome(await session.run('Code', start), 'Code')
  expect(result).toMatchObject({
    ...{ report: null, nomination: null, usage: unknownUsage, guidance_applied: 2 },
    ...{ changed: false, touched: false },
  })
})

test('a question waits for its answer; its engine gets the words', async () => {
  const session = await startSession()
  const start = await session.prepare()
  const engine_command = `${tool('ask_user', { prompt: 'Which?' })} > answer`
  const running = session.run('Code', { ...start, engine_command })
  await eventually(() => session.api.questions.size === 1)
  const [question] = session.api.questions.values()
  if (question) question.answer = { ...question.answer, status: 'answered', answer: 'the left one' }
  const { checkpoint } = outcome(await running, 'Code')
  const contract = contractOf('grep -q "the left one" answer')
  const shown = outcome(await session.run('Validate', { ...start, checkpoint, contract }), 'Validate')
  expect(shown.results).toMatchObject([{ verdict: 'passed' }])
})

test('a question that expires is an error of the tool, and another one in between is refused', async () => {
  const session = await startSession()
  const start = await session.prepare()
  const [first, second, third] = ['first', 'second', 'third'].map((name) => join(session.folder, name))
  const engine_command = [
    `curl -sS -m 1 "$GATEHOUSE_TOOLS_URL/ask_user" -H "Authorization: Bearer $GATEHOUSE_TOOLS_TOKEN" -d '{"prompt":"Slow?"}'`,
    `${tool('ask_user', { prompt: 'Another?' })} > ${second}`,
    `touch ${first}`,
    `${tool('ask_user', { prompt: 'Slow?' })} > ${third}`,
  ].join('\n')
  const running = session.run('Code', { ...start, engine_command })
  await exists(first ?? '')
  const [question] = session.api.questions.values()
  if (question) question.answer = { ...question.answer, status: 'expired' }
  expect(outcome(await running, 'Code')).toMatchObject({ status: 'finished', touched: false })
  expect(JSON.parse(readFileSync(second ?? '', 'utf8'))).toMatchObject({ error: { code: 'refused' } })
  expect(JSON.parse(readFileSync(third ?? '', 'utf8'))).toMatchObject({ error: { code: 'expired' } })
  // The same words took the open question up.
  expect(session.api.questions.size).toBe(1)
})

test.each([
  ['was withdrawn', false],
  ['is not known any more', true],
])('a question that %s is refused, and the engine goes on', async (_, forgets) => {
  const session = await startSession()
  session.api.state.forgets = forgets
  const start = await session.prepare()
  const told = join(session.folder, 'told')
  const engine_command = `${tool('ask_user', { prompt: 'Which?' })} > ${told}; echo yes > done`
  const running = session.run('Code', { ...start, engine_command })
  if (!forgets) await eventually(() => session.api.questions.size === 1)
  for (const question of session.api.questions.values())
    question.answer = { ...question.answer, status: 'withdrawn' }
  expect(outcome(await running, 'Code')).toMatchObject({ status: 'finished', changed: true })
  expect(JSON.parse(readFileSync(told, 'utf8'))).toMatchObject({ error: { code: 'refused' } })
})

test('an engine whose reported cost reaches the budget is ended with all that it started', async () => {
  const session = await startSession()
  const start = await session.prepare()
  const engine_command = [
    tool('report_usage', { request_id: 'a', cost_usd: 0.4 }),
    tool('report_usage', { request_id: 'b', cost_usd: 0.6 }),
    'echo half > half',
    'sleep 600 & wait',
  ].join('\n')
  const command = aCommand('Code', { ...session.facts, ...start, engine_command }, { budget_left_usd: 1 })
  const result = outcome(await session.api.run(command), 'Code')
  expect(result).toMatchObject({ status: 'over_budget', survivors: 0, changed: true })
  expect(result.usage).toEqual({ ...unknownUsage, cost_usd: 1 })
  expect(await liveProcesses({ group: null, mark: command.id })).toEqual([])
})

test('an engine that stays below the budget, and one that says no cost, end by themselves', async () => {
  const session = await startSession()
  const start = await session.prepare()
  for (const usage of [
    { request_id: 'a', cost_usd: 0.9 },
    { request_id: 'a', input_tokens: 9 },
  ]) {
    const engine_command = `${tool('report_usage', usage)}; sleep 0.5`
    const result = await session.run('Code', { ...start, engine_command }, { budget_left_usd: 1 })
    expect(outcome(result, 'Code').status).toBe('finished')
  }
})

test.each([
  ['edit and revert', 'cp a.txt ignored; echo two > a.txt; cat ignored > a.txt', true],
  ['a new file that is there at the end and ignored', 'echo x > ignored', false],
  ['reading', 'cat a.txt; git status; git diff', false],
  ['a set-back date', 'touch -d 2001-01-01 a.txt', true],
])('the ledger of a run: %s', async (_, engine_command, touched) => {
  const session = await startSession()
  const start = await session.prepare()
  const result = await session.run('Code', { ...start, engine_command })
  expect(outcome(result, 'Code')).toMatchObject({ changed: false, touched })
})

test('an engine that destroys its worktree has written to it', async () => {
  const session = await startSession()
  const start = await session.prepare()
  const result = await session.run('Code', { ...start, engine_command: 'rm -rf "$PWD"' })
  expect(outcome(result, 'Code')).toMatchObject({ changed: false, touched: true })
})

test('a daemon of the engine that renamed itself is gone before its work is judged', async () => {
  const session = await startSession()
  const start = await session.prepare()
  const note = join(temporaryFolder(), 'pid')
  const engine_command = startDaemon(note, '$PWD')
  const result = await session.run('Code', { ...start, engine_command })
  expect(outcome(result, 'Code')).toMatchObject({ status: 'finished', survivors: 0 })
  expect(startOf(Number(readFileSync(`${note}.done`, 'utf8')))).toBeNull()
})
