import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { git, makeRepository } from '../repositories.ts'
import type { SessionView } from './client.ts'
import { useStack } from './stack.ts'

const used = useStack()

/** Waits until a session has come to rest, with nothing of it running. */
const atRest = async (id: string): Promise<SessionView> => {
  for (let tries = 0; tries < 400; tries++) {
    const session = await used.api.get(id)
    if (session.stopped && session.compute.status !== 'live') {
      const { body } = await used.api.call('GET', `/v1/sessions/${id}/history`)
      if (!JSON.stringify(body).includes('"RUNNING"')) return session
    }
    await sleep(50)
  }
  throw new Error('the session did not come to rest')
}

const resume = (id: string, body: object = {}) => used.api.call('POST', `/v1/sessions/${id}/resume`, body)

test('until holds a session back after each stage, and resume goes on to the next and to the end', async () => {
  const { directory, id } = await used.begin({ until: 'define' })
  const stages = [
    ['define', 'Plan', 'plan'],
    ['plan', 'Code', 'code'],
    ['code', 'Validate', 'validate'],
  ] as const
  for (const [stage, next, following] of stages) {
    const session = await atRest(id)
    expect(session).toMatchObject({
      stage,
      stopped: true,
      resume_at: next,
      step: 'Rest',
      needs_you: null,
      gate: null,
      failure_kind: null,
    })
    expect(await used.stack.platform.admission.slots('local')).toEqual([])
    const back = await resume(id, { until: stage })
    expect(back.status).toBe(422)
    expect((await resume(id, { until: following })).body).toMatchObject({ stopped: false, until: following })
  }
  const last = await atRest(id)
  expect(last).toMatchObject({ stage: 'validate', resume_at: 'Review', needs_you: null })
  const early = await used.api.call('POST', `/v1/sessions/${id}/review/approve`, {
    review_id: last.review_identity?.review_id,
  })
  expect(early.status).toBe(409)
  await resume(id)
  expect(await used.api.untilGate(id, 'approval')).toMatchObject({ state: 'needs_approval', until: null })
  await used.api.approve(id)
  expect(await used.api.untilEnd(id)).toMatchObject({ state: 'merged', stopped: false })
  expect(git(directory, 'branch', '--list', 'gatehouse/*')).not.toBe('')
  expect(await used.api.verify(id)).toMatchObject({ ok: true })
})

test('a session at rest can be cancelled, and is then settled like any other', async () => {
  const { id } = await used.begin({ until: 'code' })
  await atRest(id)
  await used.api.cancel(id)
  expect(await used.api.settled(id)).toMatchObject({
    state: 'abandoned',
    execution_stopped: true,
    stopped: false,
  })
  expect((await resume(id)).status).toBe(409)
})

test('a session that is not stopped can’t be resumed, and ship can’t be named as the last stage', async () => {
  const { id } = await used.begin({ mode: 'supervise' })
  await used.api.untilGate(id, 'contract')
  const answer = await resume(id)
  expect(used.api.problem(answer).code).toBe('illegal_transition')
  await used.api.cancel(id)
  const { directory } = makeRepository()
  const refused = await used.api.call('POST', '/v1/sessions', {
    repo: directory,
    intent: 'x',
    engine_command: 'true',
    until: 'ship',
  })
  expect(refused.status).toBe(422)
})
