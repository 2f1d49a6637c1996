import { hash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newId } from '../../../lib/ids.ts'
import * as order from '../../../lib/journal/agent/write-order.ts'
import { canonical } from '../../../lib/journal/entry.ts'
import { limits } from '../../../lib/limits.ts'
import { entriesSchema } from '../../../lib/session/agent-protocol.ts'
import { objectKey } from '../../../lib/store/keys.ts'
import { temporaryFolder } from '../../repositories.ts'
import {
  type AgentSession,
  type AgentStack,
  problemOf,
  startAgentStack,
} from '../../support/agent-sessions.ts'
import { answers, asks, aTurn, callsOf, ends, starts, userSays } from '../../support/agent-turns.ts'
import { crashAt } from '../../support/pieces.ts'
import { system } from '../../support/sessions.ts'

let stack: AgentStack
beforeAll(async () => {
  stack = await startAgentStack(temporaryFolder())
}, 60_000)
afterAll(() => stack.close())

const requireProven = async (session: AgentSession) => {
  const found = await session.verify()
  expect(found, JSON.stringify(found)).toMatchObject({ ok: true })
}
const headOf = async (session: AgentSession) => (await session.item()).journal_head
/** A refused batch has left nothing. */
const requireUntouched = async (session: AgentSession, before: unknown) => {
  expect(await headOf(session)).toEqual(before)
  await requireProven(session)
}
const text = (length: number, of = 'x') => of.repeat(length)
const put = async (session: AgentSession, name: string, body: string) =>
  stack.platform.blobs.put(objectKey.artifact('team', session.id, name), body)
const refOf = (artifact: string, body: string) => ({
  ...{ artifact, bytes: Buffer.byteLength(body), sha256: hash('sha256', body) },
})

describe('a batch with records', () => {
  it('becomes part of the journal in order, with ids, time and branch given to it', async () => {
    const session = await stack.begin()
    const asked = asks({ path: 'a' }, { path: 'b' })
    const event = { type: 'tool_call', data: { tool: 'read_file', params_preview: 'a' } }
    const before = await headOf(session)
    const { sequence, records } = await session.append(userSays('Do it'), event, ...order.toolsAsked(asked))
    expect(sequence).toBe(before.sequence + 5)
    expect(records.map((record) => record.sequence - before.sequence)).toEqual([1, 3, 4, 5])
    const entries = (await session.journal()).slice(-5)
    expect(entries.map(({ type, kind, branch }) => [type, kind, branch])).toEqual([
      ['message_committed', 'record', 'main'],
      ['tool_call', 'event', 'main'],
      ['message_committed', 'record', 'main'],
      ['tool_call_requested', 'record', 'main'],
      ['tool_call_requested', 'record', 'main'],
    ])
    expect(entries.filter(({ kind }) => kind === 'record').map(({ id }) => id)).toEqual(
      records.map(({ id }) => id),
    )
    expect(entries.map(({ actor }) => actor)).toEqual(
      Array(5).fill({ kind: 'worker', id: session.worker_id }),
    )
    expect(await session.item()).toMatchObject({ agent_sequence: sequence, outbox: [] })
    await requireProven(session)
  })

  it('keeps what caused a record and what belongs to it', async () => {
    const session = await stack.begin()
    const said = {
      causation_id: newId('cmd'),
      correlation_id: newId('run'),
      metadata: { 'org.example': { n: 1 } },
    }
    await session.append({ ...userSays('one'), ...said })
    expect((await session.journal()).at(-1)).toMatchObject({ ...said, branch: 'main' })
    await requireProven(session)
  })

  it('may nest as deep as a provider’s own data does', async () => {
    const session = await stack.begin()
    const payload = Array.from({ length: 60 }).reduce<unknown>((inner) => ({ inner }), 'x')
    const activity = {
      ...{ tool_call_id: newId('call'), provider_call_id: 'p', tool_name: 'search', arguments: {} },
      ...{ outcome: { status: 'success' }, sources: [] },
      continuation: { provider: 'some', format: 'raw', payload },
    }
    const message = { ...answers('x'), content: [{ type: 'hosted_tool', activity }] }
    await session.append({ type: 'message_committed', data: { message } })
    await requireProven(session)
  })

  it('that is repeated is answered as at first and written once, whatever came between', async () => {
    const session = await stack.begin()
    const batch = [userSays('one'), ...order.toolsAsked(asks({}))]
    const first = await session.entries('a', batch)
    expect(first.status).toBe(200)
    for (let n = 0; n < limits.recordBatches - 1; n++) await session.append(userSays(`${n}`))
    await session.entries('e', [{ type: 'error', data: { message: 'an event' } }])
    const head = await headOf(session)
    const { sequence, records } = entriesSchema.parse(first.body)
    expect((await session.entries('a', batch)).body).toMatchObject({ sequence, records })
    // Nobody is told that something else was appended, be it right or wrong in itself.
    for (const other of [[userSays('another')], [{ type: 'error', data: {} }]])
      expect(problemOf(await session.entries('a', other)).code).toBe('idempotency_mismatch')
    await requireUntouched(session, head)
  })

  it('that comes twice at once is written once', async () => {
    const session = await stack.begin()
    const batch = [userSays('one'), userSays('two')]
    const twice = await Promise.all([session.entries('a', batch), session.entries('a', batch)])
    expect(twice.map(({ status }) => status)).toEqual([200, 200])
    expect(twice[0]?.body).toEqual(twice[1]?.body)
    expect((await session.journal()).filter(({ type }) => type === 'message_committed')).toHaveLength(2)
    await requireProven(session)
  })

  it('is refused whole for one record that can’t follow, by its index, kind and reason', async () => {
    const session = await stack.begin()
    const asked = asks({})
    const [call = ''] = callsOf(asked)
    await session.append(...order.toolsAsked(asked))
    const before = await headOf(session)
    const done = { type: 'text', text: 'done' } as const
    const cases = [
      [[userSays('x'), ...ends(call, [done])], 1, 'InvalidTransition', 'tool_execution_finish'],
      [starts(newId('call')), 0, 'InvalidReference', 'policy_tool_call'],
      [order.toolsAsked(asked), 0, 'DuplicateEntity', 'message'],
      [[{ ...userSays('x'), branch: newId('brn') }], 0, 'InvalidReference', 'inactive_branch'],
      [[...starts(call), ...starts(call)], 2, 'InvalidTransition', 'duplicate_policy_decision'],
    ] as const
    for (const [batch, index, kind, reason] of cases) {
      const answer = await session.entries(newId('evt'), batch)
      expect(answer.status).toBe(422)
      expect(problemOf(answer)).toMatchObject({
        ...{ code: 'record_refused', refusal: { index, kind, reason } },
        errors: [{ path: `facts.${index}` }],
      })
    }
    await requireUntouched(session, before)
  })

  it.each<[string, unknown, string]>([
    ['an id of its own', { ...userSays('x'), id: newId('evt') }, 'facts.1.id'],
    ['a time of its own', { ...userSays('x'), time: '2030-01-01T00:00:00.000Z' }, 'facts.1.time'],
    ['an unknown type', { type: 'something_else', data: {} }, 'facts.1.type'],
    ['a record of the session’s life', { type: 'state_changed', data: {} }, 'facts.1.type'],
    ['data that is not of its type', { type: 'run_cancelled', data: { run_id: 'x' } }, 'facts.1.data.run_id'],
    ['an unknown member', { type: 'run_cancelled', data: { run_id: newId('run'), a: 1 } }, 'facts.1.data.a'],
    ['neither data nor a reference', { type: 'run_cancelled' }, 'facts.1'],
    ['a cause that is no id', { ...userSays('x'), causation_id: 'x' }, 'facts.1.causation_id'],
    ['metadata without a namespace', { ...userSays('x'), metadata: { a: 1 } }, 'facts.1.metadata'],
    ['an event of a branch', { type: 'error', data: { message: 'x' }, branch: 'main' }, 'facts.1.branch'],
    [
      'a branch that it does not speak of',
      { type: 'active_branch_changed', data: { branch_id: 'main' }, branch: newId('brn') },
      'facts.1.branch',
    ],
  ])('is refused for %s, and the place is named', async (_, fact, path) => {
    const session = await stack.begin()
    const before = await headOf(session)
    const answer = await session.entries('a', [userSays('x'), fact])
    expect(answer.status).toBe(422)
    expect(problemOf(answer)).toMatchObject({ code: 'invalid_request', errors: [{ path }] })
    await requireUntouched(session, before)
  })

  it('is refused without the lease', async () => {
    const session = await stack.begin()
    const before = await headOf(session)
    const body = { epoch: session.epoch + 1, batch_id: 'a', facts: [userSays('x')] }
    const answer = await stack.call('/worker/v1/entries', { token: session.token, body })
    expect(problemOf(answer).code).toBe('superseded')
    const state = await stack.call(`/worker/v1/journal?epoch=${session.epoch + 1}`, { token: session.token })
    expect(problemOf(state).code).toBe('superseded')
    await requireUntouched(session, before)
  })

  it('may be an engine’s own fork, each record on the branch that it speaks of', async () => {
    const session = await stack.begin()
    const { records } = await session.append(userSays('one'))
    const branch_id = newId('brn')
    const data = { source_branch_id: 'main', branch_id, from_record_id: records[0]?.id }
    await session.append(
      { type: 'branch_created', data },
      { type: 'active_branch_changed', data: { branch_id } },
      userSays('on the branch'),
    )
    expect((await session.journal()).slice(-3).map(({ branch }) => branch)).toEqual(Array(3).fill(branch_id))
    expect(await session.state()).toMatchObject({ branch: branch_id })
    await requireProven(session)
  })
})

describe('data that has no room in an entry', () => {
  it('is kept beside the journal, and the entry says where', async () => {
    const session = await stack.begin()
    await session.append(userSays('small'), userSays(text(limits.journalEntry)))
    const [small, large] = (await session.journal()).slice(-2)
    expect(small).not.toHaveProperty('data_ref')
    expect(large).toMatchObject({ data: {}, data_ref: { artifact: expect.stringMatching(/^data-/) } })
    expect((await session.state()).transcript).toMatchObject({
      messages: [{ role: 'user' }, { role: 'user', content: [{ text: text(limits.journalEntry) }] }],
    })
    await requireProven(session)
  })

  it('leaves a batch of a message and all the calls that it may hold', async () => {
    const session = await stack.begin()
    const asked = asks(...Array.from({ length: 256 }, (_, n) => ({ path: text(300), n })))
    const before = (await headOf(session)).sequence
    const { sequence } = await session.append(...order.toolsAsked(asked))
    expect(sequence).toBe(before + 257)
    await requireProven(session)
    expect((await session.state()).calls).toHaveLength(256)
  })

  it('may be uploaded by the worker; the journal’s copy can’t be written over', async () => {
    const session = await stack.begin()
    const picture = text(500_000, 'QUJD')
    const asked = asks({})
    const [call = ''] = callsOf(asked)
    await session.append(...order.toolsAsked(asked), ...starts(call))
    const image = {
      type: 'image',
      mime_type: 'image/png',
      source: { type: 'inline_base64', data: picture },
    } as const
    const stated = await Promise.all(
      ends(call, [image]).map(async ({ type, data }, n) => {
        const body = canonical(data)
        await put(session, `mine-${n}`, body)
        return { type, data_ref: refOf(`mine-${n}`, body) }
      }),
    )
    await session.append(...stated)
    for (const n of [0, 1]) await put(session, `mine-${n}`, 'something else')
    await requireProven(session)
    // Too long for an answer, so it is at an address of its own.
    const { transcript } = await session.state()
    const address = 'url' in transcript ? transcript.url : ''
    expect(await (await fetch(address)).text()).toContain(picture)
    const upload = [{ kind: 'artifact', name: `data-${text(64, '0')}.json` }]
    const body = { epoch: session.epoch, uploads: upload }
    const answer = await stack.call('/worker/v1/uploads', { token: session.token, body })
    expect(problemOf(answer)).toMatchObject({ code: 'invalid_request', errors: [{ path: 'uploads.0.name' }] })
  })

  it.each<[string, (body: string) => [string | null, object]]>([
    ['that is not there', (body) => [null, refOf('mine', body)]],
    ['of another size', (body) => [`${body} `, refOf('mine', body)]],
    ['of another hash', (body) => [body, { ...refOf('mine', body), sha256: text(64, '0') }]],
    ['that is no JSON', () => ['{"message', refOf('mine', '{"message')]],
    ['that is not canonical', (body) => [`${body} `, refOf('mine', `${body} `)]],
    ['that is no object', () => ['[]', refOf('mine', '[]')]],
    ['that is over the limit', (body) => [body, { ...refOf('mine', body), bytes: limits.entryData + 1 }]],
  ])('is refused as a reference to data %s', async (_, make) => {
    const session = await stack.begin()
    const before = await headOf(session)
    const { type, data } = userSays('one')
    const [stored, data_ref] = make(canonical(data))
    if (stored !== null) await put(session, 'mine', stored)
    const answer = await session.entries('a', [{ type, data_ref }])
    expect(answer.status).toBe(422)
    expect(problemOf(answer)).toMatchObject({
      code: 'invalid_request',
      errors: [{ path: 'facts.0.data_ref' }],
    })
    await requireUntouched(session, before)
  })

  it('and is not the data of its type is refused by the place in it', async () => {
    const session = await stack.begin()
    const body = canonical({ run_id: 1 })
    await put(session, 'mine', body)
    const answer = await session.entries('a', [{ type: 'run_cancelled', data_ref: refOf('mine', body) }])
    expect(problemOf(answer)).toMatchObject({ errors: [{ path: 'facts.0.data.run_id' }] })
  })

  it('is no way out for what always stays in a line', async () => {
    const session = await stack.begin()
    const before = await headOf(session)
    const metadata = { 'org.example': text(15_000) }
    const batch = Array.from({ length: 30 }, (_, n) => ({ ...userSays(`${n}`), metadata }))
    const answer = await session.entries('a', batch)
    expect([answer.status, problemOf(answer).code]).toEqual([413, 'payload_too_large'])
    const many = Array.from({ length: limits.statedBatch + 1 }, (_, n) => userSays(`${n}`))
    expect(problemOf(await session.entries('b', many))).toMatchObject({ errors: [{ path: 'facts' }] })
    await requireUntouched(session, before)
  })
})

describe('the item', () => {
  it('keeps room: what waits in it reaches the journal before a batch that would not fit', async () => {
    const session = await stack.begin()
    const message = text(60_000)
    // A crash between the write and the journal has left this.
    await stack.platform.sessions.update(session.key, () => ({
      ...{
        actor: system,
        facts: Array.from({ length: 3 }, () => ({ type: 'error' as const, data: { message } })),
      },
    }))
    await session.append(userSays(message), userSays(message))
    expect((await session.item()).outbox).toEqual([])
    await requireProven(session)
  })

  it.each(['before', 'after'] as const)(
    'holds all of a batch or nothing when a call is the last, %s it',
    async (when) => {
      const { dynamo, s3, sfn } = stack.pieces.clients
      const facts = [userSays(text(limits.journalEntry)), userSays('small')]
      for (let n = 1, fired = true; fired; n++) {
        const session = await stack.begin()
        const { sequence } = await headOf(session)
        const head = async () => (await headOf(session)).sequence - sequence
        const crash = crashAt({ dynamo, s3, sfn }, n, when)
        const answer = await session.entries('a', facts)
        for (const client of [dynamo, s3, sfn]) client.middlewareStack.remove('crash')
        fired = crash.fired
        expect(answer.status, `call ${n}`).toBe(fired ? 500 : 200)
        expect([0, 2]).toContain(await head())
        // The caller says it again.
        expect((await session.entries('a', facts)).status).toBe(200)
        expect(await head()).toBe(2)
        await requireProven(session)
      }
    },
  )
})

it('a transcript and what may happen next are what a restarted engine is told', async () => {
  const session = await stack.begin()
  expect(await session.state()).toMatchObject({
    ...{
      branch: 'main',
      run: 'clean',
      new_run: true,
      checkpoint: null,
      calls: [],
      transcript: { messages: [] },
    },
  })
  const asked = asks({ path: 'a' })
  const [call = ''] = callsOf(asked)
  const turn = aTurn()
  await session.append(userSays('Do it'), ...order.toolsAsked(asked), ...starts(call))
  const told = {
    ...{ run: 'unfinished_batch', new_run: false },
    calls: [
      {
        ...{ tool_call_id: call, tool_name: 'read_file', arguments: { path: 'a' }, approval_id: null },
        ...{ situation: 'outcome_unknown', may: ['record_interrupted'] },
      },
    ],
    transcript: { messages: [{ role: 'user' }, { role: 'assistant' }, { role: 'tool' }] },
  }
  expect(await session.state()).toMatchObject(told)
  await session.append(...order.runFailed(turn, 'killed', [call]))
  const { calls } = await session.state()
  expect(calls).toMatchObject([
    { situation: 'interrupted', may: ['resolve_as_failed', 'resolve_as_succeeded'] },
  ])
  const result = { is_error: false, content: [{ type: 'text', text: 'it was done' }] } as const
  const message = {
    id: newId('msg'),
    timestamp: '2030-01-01T00:00:00.000Z',
    tool_call_id: call,
    tool_name: 'read_file',
  }
  await session.append(
    ...order.interruptionResolved(
      { message, result: { ...result, content: [...result.content] } },
      'engine',
      'looked',
    ),
    ...order.batchDone(turn),
  )
  await session.append(...order.answered(turn, answers('All done')))
  expect(await session.state()).toMatchObject({
    new_run: true,
    calls: [],
    checkpoint: { ...turn, next_action: 'finish_run' },
  })
  await requireProven(session)
})
