import { expect, test } from 'vitest'
import { git } from '../repositories.ts'
import type { SessionView } from './client.ts'
import { scripted } from './engines.ts'
import { useStack } from './stack.ts'

const used = useStack()
const gateOf = ({ needs_you: needs }: SessionView): string => {
  if (!needs || !('gate_id' in needs)) throw new Error(`no gate is open: ${JSON.stringify(needs)}`)
  return needs.gate_id
}

const decide = (session: SessionView, action: string, gate_id = gateOf(session)) =>
  used.api.call('POST', `/v1/sessions/${session.id}/gate`, { gate_id, action, note: `please ${action}` })

test('a session that can’t start asks at preflight; once it can, loop_back looks again and it goes on', async () => {
  const { directory, id } = await used.begin({ base: 'not-there-yet' })
  const asked = await used.api.untilGate(id, 'preflight')
  expect(asked).toMatchObject({
    state: 'created',
    preflight_retries: 1,
    needs_you: { kind: 'preflight', context: expect.stringContaining('not-there-yet') },
    gate: { unexpected: true },
  })
  expect((await decide(asked, 'loop_back')).body).toMatchObject({ step: 'Preflight', needs_you: null })
  const again = await used.api.untilGate(id, 'preflight', asked.journal_head.sequence)
  expect(again.preflight_retries).toBe(2)
  git(directory, 'branch', 'not-there-yet')
  await decide(again, 'loop_back')
  const review = await used.api.untilGate(id, 'approval', again.journal_head.sequence)
  expect(review).toMatchObject({ state: 'needs_approval', preflight_retries: 0 })
  const late = await decide(review, 'abort', gateOf(asked))
  expect(late.status).toBe(409)
  expect(used.api.problem(late)).toMatchObject({
    code: 'already_decided',
    session: { state: 'needs_approval' },
  })
  await used.api.cancel(id)
})

test('the fourth failed preflight ends the session by its own kind', async () => {
  const { id } = await used.begin({ engine_command: ['no-such-engine-anywhere'] })
  let after = -1
  for (const retries of [1, 2, 3]) {
    const asked = await used.api.untilGate(id, 'preflight', after)
    expect(asked.preflight_retries).toBe(retries)
    after = asked.journal_head.sequence
    await decide(asked, 'loop_back')
  }
  expect(await used.api.untilEnd(id, after)).toMatchObject({
    state: 'failed',
    failure_kind: 'configuration',
    error: expect.stringContaining('no-such-engine-anywhere'),
    gate: null,
  })
})

test('a waived preflight is not looked at again, and what is really missing then fails with its kind', async () => {
  const { id } = await used.begin({ base: 'not-there-at-all' })
  await decide(await used.api.untilGate(id, 'preflight'), 'advance')
  expect(await used.api.untilEnd(id)).toMatchObject({
    state: 'failed',
    failure_kind: 'configuration',
    preflight_retries: 0,
  })
})

test('work that is red three times asks; guidance and loop_back lead on, and every further red asks again', async () => {
  const { id } = await used.begin({
    engine_command: scripted("if (prompt.includes('touch it')) writeFileSync('done', '')"),
  })
  const asked = await used.api.untilGate(id, 'validate')
  expect(asked).toMatchObject({
    state: 'running',
    iterations: 3,
    consecutive_failures: 3,
    total_failures: 3,
    needs_you: { kind: 'validate', context: expect.stringContaining('done') },
    gate: { cause: 'red', unexpected: false },
    compute: { status: expect.stringMatching(/stopping|stopped/) },
  })
  await decide(asked, 'loop_back')
  const again = await used.api.untilGate(id, 'validate', asked.journal_head.sequence)
  expect(again).toMatchObject({ iterations: 4, consecutive_failures: 4, total_failures: 4 })
  expect(await used.api.call('POST', `/v1/sessions/${id}/steer`, { text: 'Please touch it' })).toMatchObject({
    status: 202,
    body: { status: 'accepted' },
  })
  await decide(again, 'loop_back')
  const review = await used.api.untilGate(id, 'approval', again.journal_head.sequence)
  expect(review).toMatchObject({
    iterations: 5,
    consecutive_failures: 0,
    total_failures: 4,
    steering_messages: ['Please touch it'],
    guidance_applied: 1,
  })
  const statuses = (await used.api.journal(id)).filter(({ type }) => type === 'operator_guidance')
  expect(statuses.map(({ data }) => data.status)).toEqual(['accepted', 'applied'])
  await used.api.cancel(id)
})

test('a person may let red work through; the review says so, and it is delivered only by their approval', async () => {
  const { directory, id } = await used.begin({ engine_command: 'echo work > work', yes_ship: true })
  const asked = await used.api.untilGate(id, 'validate')
  await decide(asked, 'advance')
  const session = await used.api.untilGate(id, 'approval', asked.journal_head.sequence)
  expect(session).toMatchObject({ accepted_red: ['done'], consecutive_failures: 0 })
  expect(session.needs_you?.context).toContain('red: done')
  const review = await used.api.review(id)
  expect(review).toMatchObject({ accepted_red: ['done'], checks: [{ name: 'done', verdict: 'failed' }] })
  await used.api.approve(id)
  expect(await used.api.untilEnd(id)).toMatchObject({ state: 'merged' })
  expect(git(directory, 'show', `${review.commit}:work`)).toBe('work')
  expect(await used.api.verify(id)).toMatchObject({ ok: true })
})

test('an abort at the validate gate ends the session; a decision at a gate of another kind is refused', async () => {
  const { id } = await used.begin({ engine_command: 'true' })
  const asked = await used.api.untilGate(id, 'validate')
  const review = await used.api.call('POST', `/v1/sessions/${id}/review/approve`, { review_id: 'rev_x' })
  expect(review.status).toBe(422)
  expect((await decide(asked, 'abort')).body).toMatchObject({
    state: 'abandoned',
    error: 'please abort',
    decided_by: 'admin',
  })
  const again = await decide(asked, 'advance', gateOf(asked))
  expect(used.api.problem(again).code).toBe('already_decided')
})

test('confirm and review are decided by their own calls only', async () => {
  const { id } = await used.begin({ mode: 'supervise' })
  const asked = await used.api.untilGate(id, 'contract')
  const wrong = await decide(asked, 'advance')
  expect(wrong.status).toBe(409)
  expect(used.api.problem(wrong).code).toBe('illegal_transition')
  await used.api.cancel(id)
})
