import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { createAgentJournal } from '../../../functions/worker/agent-journal.ts'
import { createClient } from '../../../functions/worker/client.ts'
import { startTools } from '../../../functions/worker/tools.ts'
import { toolErrorSchema, toolLimits, tools as toolSchemas } from '../../../lib/engine/tools.ts'
import { newId } from '../../../lib/ids.ts'
import * as order from '../../../lib/journal/agent/write-order.ts'
import { limits } from '../../../lib/limits.ts'
import { temporaryFolder } from '../../repositories.ts'
import { type AgentSession, type AgentStack, startAgentStack } from '../../support/agent-sessions.ts'
import { asks, callsOf, ends, starts, userSays } from '../../support/agent-turns.ts'

let stack: AgentStack
beforeAll(async () => {
  stack = await startAgentStack(temporaryFolder())
}, 60_000)
afterAll(() => stack.close())

/** A worker's client of a running session, under a lease of its own, and the journal that it gives to its engine. */
const working = async (loses: (path: string) => boolean = () => false) => {
  const session = await stack.begin()
  const stop = new AbortController()
  const client = createClient({
    ...{ api: await stack.listen(loses), token: session.token, signal: stop.signal },
    onSuperseded: (reason) => stop.abort(reason),
  })
  await session.relaunch()
  await client.lease()
  return { session, journal: createAgentJournal(client, temporaryFolder()) }
}
const said = async (session: AgentSession): Promise<number> =>
  (await session.journal()).filter(({ type }) => type === 'message_committed').length
const requireProven = async (session: AgentSession) =>
  expect(await session.verify()).toMatchObject({ ok: true })

describe('an engine’s journal', () => {
  it('has what was appended once the promise is kept, in the order in which it was given', async () => {
    const { session, journal } = await working()
    const first = journal.append([userSays('one')])
    await journal.append([userSays('two')])
    await first
    const { journal_head } = await session.item()
    const entries = await stack.platform.journals.after(session.key, journal_head.sequence - 2, 10)
    expect(entries.map(({ data }) => data)).toMatchObject([
      { message: { content: [{ text: 'one' }] } },
      { message: { content: [{ text: 'two' }] } },
    ])
  })

  it('is written once, however often an answer is lost', async () => {
    let answered = 0
    const { session, journal } = await working((path) => path.endsWith('/entries') && answered++ < 3)
    await journal.append([userSays('one'), userSays('two')])
    expect(answered).toBe(4)
    expect(await said(session)).toBe(2)
    await requireProven(session)
  })

  it('uploads what is larger than a call may be, and reads it back', async () => {
    const { session, journal } = await working()
    const asked = asks({})
    const [call = ''] = callsOf(asked)
    await journal.append([...order.toolsAsked(asked), ...starts(call)])
    const text = 'é'.repeat(limits.record.text / 2)
    await journal.append(
      ends(
        call,
        Array.from({ length: 3 }, () => ({ type: 'text', text })),
      ),
    )
    const { messages, calls } = await journal.state()
    expect(calls).toEqual([])
    expect(messages.at(-1)).toMatchObject({
      content: [{ output: { type: 'content', value: Array(3).fill({ type: 'text', text }) } }],
    })
    await requireProven(session)
  })

  it('refuses a batch that can’t follow, and goes on', async () => {
    const { session, journal } = await working()
    const refused = journal.append(starts(newId('call')))
    const next = journal.append([userSays('one')])
    await expect(refused).rejects.toMatchObject({
      name: 'Refused',
      problem: { refusal: { index: 0, kind: 'InvalidReference', reason: 'policy_tool_call' } },
    })
    await next
    expect(await said(session)).toBe(1)
  })

  it('takes nothing more once the lease is lost', async () => {
    const { session, journal } = await working()
    await journal.append([userSays('one')])
    await session.loseLease()
    const { journal_head: before } = await session.item()
    for (const text of ['two', 'three'])
      await expect(journal.append([userSays(text)])).rejects.toMatchObject({ name: 'Superseded' })
    await expect(journal.state()).rejects.toMatchObject({ name: 'Superseded' })
    expect((await session.item()).journal_head).toEqual(before)
  })
})

describe('the tools of an engine', () => {
  const serving = async (loses?: (path: string) => boolean) => {
    const { session, journal } = await working(loses)
    const run = async () => {
      const tools = await startTools({
        ...{ ask: async () => ({ kind: 'refused', reason: 'nobody' }), guidance: async () => [] },
        ...{ journal, now: Date.now },
      })
      onTestFinished(() => tools.close())
      const call = async (name: string, body: unknown) => {
        const answer = await fetch(`${tools.url}/${name}`, {
          method: 'POST',
          headers: { authorization: `Bearer ${tools.token}` },
          body: JSON.stringify(body),
        })
        const told: unknown = await answer.json()
        return { status: answer.status, told }
      }
      return { tools, call }
    }
    return { session, journal, run, ...(await run()) }
  }
  const placesIn = (told: unknown) => toolSchemas.append_records.answer.parse(told).records

  it('append records and tell what they come to', async () => {
    const { session, call } = await serving()
    const asked = asks({ path: 'a' })
    const records = [userSays('x'.repeat(toolLimits.body)), ...order.toolsAsked(asked)]
    const { status, told } = await call('append_records', { records })
    expect(status).toBe(200)
    const entries = (await session.journal()).slice(-3).map(({ sequence, id }) => ({ sequence, id }))
    expect(placesIn(told)).toEqual(entries)
    const state = await call('journal_state', {})
    expect(toolSchemas.journal_state.answer.parse(state.told)).toMatchObject({
      ...{ branch: 'main', run: 'unfinished_batch', new_run: false },
      calls: [{ tool_call_id: callsOf(asked)[0], tool_name: 'read_file', situation: 'undecided' }],
      messages: [{ role: 'user' }, { role: 'assistant' }, { role: 'tool' }],
    })
  })

  it('append a named batch once in a run, and again in another run', async () => {
    const { session, call, run } = await serving()
    const configuration = { type: 'configuration_changed', data: { profile_id: 'careful' } }
    const body = { batch_id: 'one', records: [configuration] }
    const [first, again] = [await call('append_records', body), await call('append_records', body)]
    expect(again).toEqual(first)
    const other = await (await run()).call('append_records', body)
    expect(placesIn(other.told)).not.toEqual(placesIn(first.told))
    expect((await session.journal()).filter(({ type }) => type === 'configuration_changed')).toHaveLength(2)
  })

  it('say which record is refused, and why', async () => {
    const { session, call } = await serving()
    const { journal_head: before } = await session.item()
    const refused = await call('append_records', { records: [userSays('x'), ...starts(newId('call'))] })
    expect(refused.status).toBe(422)
    expect(toolErrorSchema.parse(refused.told).error).toMatchObject({
      ...{ code: 'record_refused', errors: [{ path: 'records.1' }] },
      refusal: { index: 1, kind: 'InvalidReference', reason: 'policy_tool_call' },
    })
    const malformed = await call('append_records', {
      records: [{ type: 'run_cancelled', data: { run_id: 1 } }],
    })
    expect(malformed.status).toBe(422)
    expect(toolErrorSchema.parse(malformed.told).error).toMatchObject({
      ...{ code: 'invalid_request', errors: [{ path: 'records.0.data.run_id' }] },
    })
    for (const record of [
      { type: 'error', data: { message: 'an event' } },
      { type: 'state_changed', data: {} },
      { type: 'run_cancelled' },
      { ...userSays('x'), id: newId('evt') },
    ]) {
      const { status, told } = await call('append_records', { records: [record] })
      expect([status, toolErrorSchema.parse(told).error.code]).toEqual([422, 'invalid_request'])
    }
    expect((await session.item()).journal_head).toEqual(before)
  })

  it('say so when the worker is no longer the one', async () => {
    const { session, call } = await serving()
    await session.loseLease()
    for (const [name, body] of [
      ['append_records', { records: [userSays('x')] }],
      ['journal_state', {}],
    ] as const) {
      const { status, told } = await call(name, body)
      expect([status, toolErrorSchema.parse(told).error.code]).toEqual([503, 'unavailable'])
    }
  })

  it('end when the batch under way is appended', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const { session, call, tools } = await serving((path) => {
      if (path.endsWith('/entries')) resolve()
      return false
    })
    const appended = call('append_records', { records: [userSays('x')] }).catch(() => null)
    await promise
    await tools.close()
    await appended
    expect(await said(session)).toBe(1)
  })
})
