import { expect, test } from 'vitest'
import type { Start } from './client.ts'
import { scripted } from './engines.ts'
import { useStack } from './stack.ts'

const used = useStack()

const begin = async (body: string, more: Partial<Start> = {}) => {
  const contract = { checks: [{ name: 'done', command: 'grep -q blue done' }] }
  return (await used.begin({ engine_command: scripted(body), contract, ...more })).id
}

const asked = async (id: string) => {
  await used.api.follow(id, ({ type }) => type === 'user_input_requested')
  const session = await used.api.get(id)
  const needs = session.needs_you
  if (!needs || !('request_id' in needs)) throw new Error(`no question waits: ${JSON.stringify(needs)}`)
  return { session, request_id: needs.request_id }
}

const answer = (id: string, request_id: string, text: string) =>
  used.api.call('POST', `/v1/sessions/${id}/answer`, { request_id, text })

test('a running engine asks a person, is answered, and goes on with the answer', async () => {
  const id = await begin(
    "const { text } = await tool('ask_user', { prompt: 'Which colour?' }); writeFileSync('done', text)",
  )
  const { session, request_id } = await asked(id)
  expect(session).toMatchObject({
    state: 'running',
    gate: null,
    needs_you: { kind: 'question', context: 'Which colour?' },
    question: { status: 'pending', prompt: 'Which colour?' },
  })
  expect((await answer(id, `req_${'0'.repeat(26)}`, 'red')).status).toBe(404)
  const answers = await Promise.all(['blue', 'blue'].map((text) => answer(id, request_id, text)))
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409])
  const gate = await used.api.untilGate(id, 'approval')
  expect(gate).toMatchObject({
    state: 'needs_approval',
    question: { status: 'answered', answer: 'blue', answered_by: 'admin' },
  })
  expect((await answer(id, request_id, 'late')).status).toBe(409)
  await used.api.cancel(id)
})

test('a question that its engine does not wait for is withdrawn with the run', async () => {
  const id = await begin(
    "void tool('ask_user', { prompt: 'Still there?' }); setTimeout(() => process.exit(0), 1500)",
    {
      repair_invokes: 0,
    },
  )
  const { request_id } = await asked(id)
  const ended = await used.api.untilEnd(id)
  expect(ended).toMatchObject({ state: 'failed', needs_you: null, question: { status: 'withdrawn' } })
  expect((await answer(id, request_id, 'yes')).status).toBe(409)
})

test('a cancel unblocks a question at once', async () => {
  const id = await begin("await tool('ask_user', { prompt: 'Go on?' })")
  await asked(id)
  await used.api.cancel(id)
  expect(await used.api.settled(id)).toMatchObject({ state: 'abandoned', needs_you: null })
})

test('guidance reaches a running engine that asks for it, and is then shown as applied', async () => {
  const id = await begin(`
    await tool('ask_user', { prompt: 'ready' })
    const { messages } = await tool('guidance')
    writeFileSync('done', messages.map(({ text }) => text).join(' '))
  `)
  const { request_id } = await asked(id)
  await used.api.call('POST', `/v1/sessions/${id}/steer`, { text: 'paint it blue' })
  expect(await used.api.get(id)).toMatchObject({ steering_messages: ['paint it blue'], guidance_applied: 0 })
  await answer(id, request_id, 'go')
  expect(await used.api.untilGate(id, 'approval')).toMatchObject({ guidance_applied: 1 })
  await used.api.cancel(id)
  const late = await used.api.call('POST', `/v1/sessions/${id}/steer`, { text: 'too late' })
  expect(late.status).toBe(409)
})
