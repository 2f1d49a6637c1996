import { expect, test } from 'vitest'
import type { Start } from './client.ts'
import { scripted } from './engines.ts'
import { useStack } from './stack.ts'

const used = useStack()
const begin = (engine_command: Start['engine_command'], more: Partial<Start> = {}) =>
  used.begin({ engine_command, ...more })

const typesOf = async (id: string) => (await used.api.journal(id)).map(({ type }) => type)

test('a rate limit is waited for inside the machine with nothing running, and costs no iteration', async () => {
  const { id } = await begin(
    scripted(`
      if (run === 1) await tool('report_status', { status: 'rate_limited', reason: 'quota', retry_after_secs: 3 })
      else writeFileSync('done', '')
    `),
    { max_wall_secs: 600 },
  )
  const entries = await used.api.follow(
    id,
    ({ type, data }) => type === 'step_completed' && data.next === 'RateLimit',
  )
  const waiting = await used.api.get(id)
  expect(waiting).toMatchObject({
    state: 'running',
    step: 'RateLimit',
    needs_you: null,
    infra_failures: 1,
    last_turn: { status: 'rate_limited', decided_by_layer: 1, reason: 'quota' },
  })
  const running = await used.api.follow(id, ({ type }) => type === 'compute_stopped')
  expect(running.filter(({ type }) => type === 'engine_started')).toHaveLength(1)
  const session = await used.api.untilGate(id, 'approval', entries.at(-1)?.sequence)
  expect(session).toMatchObject({
    state: 'needs_approval',
    iterations: 1,
    infra_failures: 0,
    rate_limit: null,
  })
  const lifted = (await used.api.journal(id)).find(({ type }) => type === 'rate_limit_lifted')
  const started = (await used.api.journal(id)).find(({ type }) => type === 'run_started')
  // The clock stood still meanwhile: at least the three seconds are added to the deadline.
  expect(
    Date.parse(String(lifted?.data.deadline_at)) - Date.parse(String(started?.data.deadline_at)),
  ).toBeGreaterThan(1500)
  const history = await used.api.call('GET', `/v1/sessions/${id}/history`)
  expect(JSON.stringify(history.body)).toContain('"RateLimit"')
  await used.api.cancel(id)
})

test('a cancel while a rate limit is waited for ends the session at once', async () => {
  const { id } = await begin(
    scripted("await tool('report_status', { status: 'rate_limited', retry_after_secs: 3000 })"),
  )
  await used.api.follow(id, ({ type, data }) => type === 'step_completed' && data.next === 'RateLimit')
  await used.api.cancel(id)
  expect(await used.api.settled(id)).toMatchObject({ state: 'abandoned', execution_stopped: true })
})

test('an engine that is killed is started once more with the same iteration', async () => {
  const { id } = await begin(
    scripted("if (run === 1) process.kill(process.pid, 'SIGKILL'); else writeFileSync('done', '')"),
  )
  const session = await used.api.untilGate(id, 'approval')
  expect(session).toMatchObject({
    state: 'needs_approval',
    iterations: 1,
    retries_used: 1,
    total_failures: 0,
  })
  const retried = (await used.api.journal(id)).find(({ type }) => type === 'invocation_retried')
  expect(retried?.data).toMatchObject({
    hypothesis: 1,
    retries_remaining: 0,
    reason: expect.stringContaining('SIGKILL'),
  })
  await used.api.cancel(id)
})

test('an engine that was killed after it had finished the work is green by the contract', async () => {
  const { id } = await begin(scripted("writeFileSync('done', ''); process.kill(process.pid, 'SIGKILL')"))
  expect(await used.api.untilGate(id, 'approval')).toMatchObject({ state: 'needs_approval', iterations: 1 })
  expect(await typesOf(id)).not.toContain('invocation_retried')
  await used.api.cancel(id)
})

test('an engine whose command is not there counts as infrastructure, up to its ceiling', async () => {
  const { id } = await begin('exit 127')
  expect(await used.api.untilEnd(id)).toMatchObject({
    state: 'failed',
    failure_kind: 'infrastructure',
    iterations: 1,
    consecutive_failures: 0,
    last_turn: { status: 'agent_unavailable', decided_by_layer: 2 },
  })
})

test('a sign-in that is not there ends the session by its kind, with the work kept for another to go on from', async () => {
  const { id } = await begin(
    scripted(
      "writeFileSync('half', 'x'); await tool('report_status', { status: 'auth_required', reason: 'sign in' })",
    ),
  )
  const failed = await used.api.untilEnd(id)
  expect(failed).toMatchObject({
    state: 'failed',
    failure_kind: 'auth_required',
    error: 'sign in',
    retained_work: true,
  })
})

test('an engine that spends the budget is ended, and the work is kept', async () => {
  const { id } = await begin(
    scripted(`
      writeFileSync('half', 'x')
      await tool('report_usage', { request_id: 'a', input_tokens: 10, output_tokens: 5, cost_usd: 0.75 })
      await tool('report_usage', { request_id: 'a', input_tokens: 10, output_tokens: 5, cost_usd: 0.75 })
      await tool('report_usage', { request_id: 'b', input_tokens: null, output_tokens: 5, cost_usd: 0.5 })
      await new Promise((resolve) => setTimeout(resolve, 60_000))
    `),
    { budget_usd: 1 },
  )
  const failed = await used.api.untilEnd(id)
  expect(failed).toMatchObject({
    state: 'failed',
    failure_kind: 'budget_exhausted',
    retained_work: true,
    cost_usd: 1.25,
    usage: { input_tokens: 10, output_tokens: 10, cost_usd: 1.25, complete: false },
  })
  expect(await typesOf(id)).toContain('budget_exhausted')
})

test('an engine that reports nothing has an unknown cost, which is not zero', async () => {
  const { id } = await begin('touch done', { budget_usd: 1 })
  expect(await used.api.untilGate(id, 'approval')).toMatchObject({
    cost_usd: null,
    usage: { input_tokens: null, cost_usd: null, complete: false },
  })
  await used.api.cancel(id)
})
