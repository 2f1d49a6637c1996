import { expect, test } from 'vitest'
import { git } from '../repositories.ts'
import { scripted } from './engines.ts'
import { useStack } from './stack.ts'

const used = useStack()

const proceed = (id: string, body: object) => used.api.call('POST', `/v1/sessions/${id}/continue`, body)

const idOf = (answer: { body: unknown }): string => String(Object(answer.body).id)

test('a delivered session is continued from its delivered commit, whatever its branch has become', async () => {
  const { directory, id } = await used.begin()
  await used.api.untilGate(id, 'approval')
  await used.api.approve(id)
  const merged = await used.api.settled(id)
  const answer = await proceed(id, {
    intent: 'Be more than done',
    engine_command: 'touch more',
    contract: { checks: [{ name: 'more', command: 'test -e more' }] },
  })
  expect(answer.status).toBe(201)
  expect(answer.body).toMatchObject({
    resumed_from: id,
    repo: merged.repo,
    mode: 'auto',
    intent: 'Be more than done',
  })
  const next = await used.api.untilGate(idOf(answer), 'approval')
  expect(next).toMatchObject({ base: merged.result_commit, start_commit: merged.result_commit })
  expect((await used.api.review(next.id)).changed_paths.map(({ path }) => path)).toEqual(['more'])
  await used.api.approve(next.id)
  const { result_commit } = await used.api.settled(next.id)
  expect(git(directory, 'rev-parse', `${result_commit}^`)).toBe(merged.result_commit)
})

test('a cancel that keeps the work keeps also what was not saved yet, and another session goes on from it', async () => {
  const { id } = await used.begin({
    keep_workspace_on_cancel: true,
    engine_command: scripted(`
      if (!existsSync('half')) {
        writeFileSync('half', 'half')
        await tool('ask_user', { prompt: 'wait' })
      } else writeFileSync('done', readFileSync('half'))
    `),
  })
  await used.api.follow(id, ({ type }) => type === 'user_input_requested')
  await used.api.call('POST', `/v1/sessions/${id}/steer`, { text: 'mind the gap' })
  const early = await proceed(id, { intent: 'Go on' })
  expect(early.status).toBe(409)
  await used.api.cancel(id)
  const old = await used.api.settled(id)
  expect(old).toMatchObject({ state: 'abandoned', retained_work: true, compute: { status: 'stopped' } })
  const headers = { 'idempotency-key': 'go-on' }
  const [first, second] = [
    await used.api.call('POST', `/v1/sessions/${id}/continue`, { intent: 'Go on' }, headers),
    await used.api.call('POST', `/v1/sessions/${id}/continue`, { intent: 'Go on' }, headers),
  ]
  expect(second.body).toEqual(first.body)
  const next = await used.api.untilGate(idOf(first), 'approval')
  expect(next).toMatchObject({
    resumed_from: id,
    state: 'needs_approval',
    start_commit: old.start_commit,
    steering_messages: ['mind the gap'],
    guidance_applied: 1,
    mutated: true,
  })
  const review = await used.api.review(next.id)
  expect(review.changed_paths.map(({ path }) => path)).toEqual(['done', 'half'])
  await used.api.cancel(next.id)
})

test('a session that left nothing to go on from says so', async () => {
  const { id } = await used.begin({ engine_command: 'touch half; false', repair_invokes: 0 })
  expect(await used.api.settled(id)).toMatchObject({
    state: 'failed',
    failure_kind: 'error',
    retained_work: false,
  })
  const answer = await proceed(id, { intent: 'Go on' })
  expect(answer.status).toBe(409)
  expect(used.api.problem(answer)).toMatchObject({
    code: 'illegal_transition',
    detail: expect.stringContaining('keep_workspace_on_failure'),
  })
  expect((await proceed(id, { intent: 'Go on', repo: '/elsewhere' })).status).toBe(422)
})

test('a failed session keeps its work where that was asked for', async () => {
  const { id } = await used.begin({
    engine_command: 'touch half; false',
    repair_invokes: 0,
    keep_workspace_on_failure: true,
  })
  expect(await used.api.settled(id)).toMatchObject({ state: 'failed', retained_work: true })
  const answer = await proceed(id, { intent: 'Go on', engine_command: 'touch done' })
  const next = await used.api.untilGate(idOf(answer), 'approval')
  expect((await used.api.review(next.id)).changed_paths.map(({ path }) => path)).toEqual(['done', 'half'])
  await used.api.cancel(next.id)
})
