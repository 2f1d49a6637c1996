import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { liveProcesses } from '../../lib/process/live.ts'
import { git, makeRepository } from '../repositories.ts'
import type { Start } from './client.ts'
import { scripted } from './engines.ts'
import { useStack } from './stack.ts'

const used = useStack({ concurrency: 3 })
const contract: Start['contract'] = { checks: [{ name: 'done', command: 'test -e done' }] }

const start = async (more: Partial<Start> = {}) => {
  const { directory } = makeRepository()
  const session = await used.api.start({
    repo: directory,
    intent: 'Be done',
    engine_command: 'touch done',
    mode: 'auto',
    contract,
    ...more,
  })
  return { directory, id: session.id }
}

test('of many approvals at once exactly one wins; the rest are told so with the session as it is', async () => {
  const { directory, id } = await start()
  await used.api.untilGate(id, 'approval')
  const { review_id } = await used.api.review(id)
  const answers = await Promise.all(
    Array.from({ length: 8 }, () =>
      used.api.call('POST', `/v1/sessions/${id}/review/approve`, { review_id }),
    ),
  )
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, ...Array(7).fill(409)])
  for (const answer of answers.filter(({ status }) => status === 409)) {
    expect(used.api.problem(answer)).toMatchObject({ code: 'already_decided', session: { id } })
  }
  expect(await used.api.untilEnd(id)).toMatchObject({ state: 'merged' })
  expect(git(directory, 'branch', '--list', 'gatehouse/*').split('\n')).toHaveLength(1)
  const journal = await used.api.journal(id)
  expect(
    journal.filter(({ type, data }) => type === 'gate_resolved' && data.action === 'approve'),
  ).toHaveLength(1)
  expect(journal.filter(({ type }) => type === 'merge_completed')).toHaveLength(1)
})

test('an approval and a rejection and a cancel at once: one of them is what happened', async () => {
  const { id } = await start()
  await used.api.untilGate(id, 'approval')
  const { review_id } = await used.api.review(id)
  const [approve, reject, cancel] = await Promise.all([
    used.api.call('POST', `/v1/sessions/${id}/review/approve`, { review_id }),
    used.api.call('POST', `/v1/sessions/${id}/review/reject`, { review_id, reason: 'no' }),
    used.api.cancel(id),
  ])
  const ended = await used.api.untilEnd(id)
  expect([approve.status, reject.status].filter((status) => status === 200).length).toBeLessThanOrEqual(1)
  expect(cancel.status).toBe(200)
  if (reject.status === 200) expect(ended).toMatchObject({ state: 'abandoned', error: 'no' })
  if (ended.state === 'merged') expect(approve.status).toBe(200)
  expect(await used.api.verify(id)).toMatchObject({ ok: true })
})

test('changes asked for lead to a new review; an approval of the old one is refused with the new one', async () => {
  const { id } = await start({
    engine_command:
      'touch done; echo "$GATEHOUSE_ITERATION" > round; grep -q "add a note" "$GATEHOUSE_PROMPT_FILE" && touch note; true',
  })
  const first = await used.api.untilGate(id, 'approval')
  const old = await used.api.review(id)
  const asked = await used.api.call('POST', `/v1/sessions/${id}/review/changes`, {
    review_id: old.review_id,
    text: 'Please add a note',
  })
  expect(asked.body).toMatchObject({
    state: 'running',
    needs_you: null,
    steering_messages: ['Please add a note'],
  })
  const second = await used.api.untilGate(id, 'approval', first.journal_head.sequence)
  expect(second).toMatchObject({ state: 'needs_approval', iterations: 2 })
  const stale = await used.api.call('POST', `/v1/sessions/${id}/review/approve`, { review_id: old.review_id })
  expect(stale.status).toBe(409)
  const problem = used.api.problem(stale)
  expect(problem).toMatchObject({
    code: 'review_moved',
    review: { review_id: second.review_identity?.review_id },
  })
  expect(problem.review?.changed_paths.map(({ path }) => path)).toEqual(['done', 'note', 'round'])
  await used.api.approve(id)
  expect(await used.api.untilEnd(id)).toMatchObject({ state: 'merged' })
})

test('a rejected review ends the session and delivers nothing', async () => {
  const { directory, id } = await start()
  await used.api.untilGate(id, 'approval')
  const { review_id } = await used.api.review(id)
  const answer = await used.api.call('POST', `/v1/sessions/${id}/review/reject`, {
    review_id,
    reason: 'not like this',
  })
  expect(answer.body).toMatchObject({
    state: 'abandoned',
    error: 'not like this',
    decided_by: 'admin',
    failure_kind: null,
  })
  expect(git(directory, 'branch', '--list', 'gatehouse/*')).toBe('')
  const cancelled = await used.api.cancel(id)
  expect(cancelled.body).toMatchObject({ already_terminal: true, session: { state: 'abandoned' } })
})

test.each<[string, Partial<Start>, string]>([
  ['being created', {}, 'session_created'],
  ['its worker starts', {}, 'lease_taken'],
  [
    'a baseline check runs',
    { contract: { checks: [{ name: 'slow', command: 'sleep 300' }] } },
    'check_started',
  ],
  ['the contract waits', { mode: 'supervise' }, 'gate_opened'],
  [
    'the engine runs with a grandchild',
    { engine_command: '(setsid sleep 300 & sleep 300) ; true' },
    'engine_started',
  ],
  [
    'its work is validated',
    { contract: { checks: [{ name: 'slow', command: 'test -e done && sleep 300' }] } },
    'engine_finished',
  ],
  [
    'the clean checkout is verified',
    {
      engine_command: 'touch done; mkdir -p cache; touch cache/seen; echo cache > .gitignore',
      contract: { checks: [{ name: 'slow', command: 'test -e done || exit 1; test -e cache || sleep 300' }] },
    },
    'verdict_reached',
  ],
  [
    'the engine’s question waits',
    { engine_command: scripted("await tool('ask_user', { prompt: 'Go on?' })") },
    'user_input_requested',
  ],
  [
    'setup runs',
    { contract: { setup: ['sleep 300'], checks: [{ name: 'x', command: 'false' }] } },
    'lease_taken',
  ],
])('cancelled while %s: it ends at once, and nothing of it is left running', async (_name, more, type) => {
  const { directory, id } = await start(more)
  await used.api.follow(id, (entry) => entry.type === type)
  const answer = await used.api.call('POST', `/v1/sessions/${id}/cancel`, { reason: 'changed my mind' })
  expect(answer.body).toMatchObject({
    already_terminal: false,
    session: { state: 'abandoned', needs_you: null, error: 'changed my mind' },
  })
  const session = await used.api.settled(id)
  expect(session.state).toBe('abandoned')
  if (session.compute.status !== 'none')
    expect(session.compute).toMatchObject({ status: 'stopped', stopped_at: expect.any(String) })
  for (const { data } of (await used.api.journal(id)).filter((entry) => entry.type === 'lease_taken')) {
    expect(await liveProcesses({ group: null, mark: String(data.worker_id) })).toEqual([])
  }
  expect(git(directory, 'branch', '--list', 'gatehouse/*')).toBe('')
  expect(await used.api.verify(id)).toMatchObject({ ok: true })
})

/** Waits until a session stands in the queue. */
const queued = async (id: string): Promise<void> => {
  while ((await used.api.get(id)).queue?.place == null) await sleep(20)
}

test('over the limit sessions wait for a slot, first in first out, and a waiting one can be cancelled', async () => {
  const blocking: Partial<Start> = { contract: { checks: [{ name: 'slow', command: 'sleep 300' }] } }
  const isChecking = (entry: { type: string }) => entry.type === 'check_started'
  const busy = [await start(blocking), await start(blocking), await start(blocking)] as const
  for (const { id } of busy) await used.api.follow(id, isChecking)
  const first = await start(blocking)
  const second = await start(blocking)
  const third = await start(blocking)
  for (const { id } of [first, second, third]) await queued(id)
  for (const [index, { id }] of [first, second, third].entries()) {
    expect(await used.api.get(id)).toMatchObject({
      state: 'created',
      step: 'Admit',
      needs_you: null,
      queue: { place: index + 1, waiting: 3 },
      compute: { status: 'none' },
    })
  }
  await used.api.cancel(second.id)
  expect(await used.api.settled(second.id)).toMatchObject({
    state: 'abandoned',
    compute: { status: 'none', stopped_at: null },
  })
  expect((await used.api.get(third.id)).queue).toEqual({ place: 2, waiting: 2 })
  await used.api.cancel(busy[0].id)
  await used.api.follow(first.id, isChecking)
  expect(await used.api.get(first.id)).toMatchObject({ queue: null })
  expect(await used.api.get(third.id)).toMatchObject({
    ...{ step: 'Admit', queue: { place: 1, waiting: 1 }, compute: { status: 'none' } },
  })
  await used.api.cancel(busy[1].id)
  await used.api.follow(third.id, isChecking)
  for (const { id } of [busy[2], first, third]) await used.api.cancel(id)
  for (const { id } of [...busy, first, third]) await used.api.settled(id)
  expect(await used.stack.platform.admission.slots('local')).toEqual([])
})

test('a session that waits for a person keeps no other from running', async () => {
  for (let index = 0; index < 4; index++) {
    const { id } = await start({ mode: 'supervise' })
    expect(await used.api.untilGate(id, 'contract')).toMatchObject({ needs_you: { kind: 'contract' } })
  }
})
