import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { newId } from '../../../lib/ids.ts'
import * as order from '../../../lib/journal/agent/write-order.ts'
import { cancel, steer } from '../../../lib/session/controls.ts'
import { transition } from '../../../lib/store/effects.ts'
import { temporaryFolder } from '../../repositories.ts'
import {
  type AgentSession,
  type AgentStack,
  type Answer,
  problemOf,
  startAgentStack,
} from '../../support/agent-sessions.ts'
import { asks, callsOf, ends, starts, userSays } from '../../support/agent-turns.ts'
import { ada } from '../../support/sessions.ts'

let stack: AgentStack
beforeAll(async () => {
  stack = await startAgentStack(temporaryFolder())
}, 60_000)
afterAll(() => stack.close())

const requireProven = async (session: AgentSession) => {
  const found = await session.verify()
  expect(found, JSON.stringify(found)).toMatchObject({ ok: true })
}
const branchOf = ({ body }: Answer): string => z.strictObject({ branch_id: z.string() }).parse(body).branch_id

/** A session between two runs, whose agent has said something. */
const spoken = async (...texts: string[]) => {
  const session = await stack.begin('ValidateGate')
  const ids: string[] = []
  for (const text of texts) ids.push((await session.append(userSays(text))).records[0]?.id ?? '')
  return { ...session, ids }
}
const messages = async (session: AgentSession): Promise<unknown> => {
  const { transcript } = await session.state()
  const content = 'messages' in transcript ? transcript.messages : []
  return content.map(
    (message) =>
      z.object({ content: z.tuple([z.object({ text: z.string() })]) }).parse(message).content[0].text,
  )
}

describe('forking', () => {
  it('goes on from a record: created and activated together, by the person, on the new branch', async () => {
    const session = await spoken('one', 'two')
    const [one = ''] = session.ids
    const answer = await session.fork(one)
    expect(answer.status).toBe(201)
    const branch_id = branchOf(answer)
    const [created, changed] = (await session.journal()).slice(-2)
    const same = { branch: branch_id, actor: { kind: 'person', id: 'ada' }, kind: 'record' }
    expect(created).toMatchObject({
      ...{ ...same, type: 'branch_created' },
      data: { source_branch_id: 'main', branch_id, from_record_id: one },
    })
    expect(changed).toMatchObject({ ...same, type: 'active_branch_changed', data: { branch_id } })
    expect(await messages(session)).toEqual(['one'])
    await session.append(userSays('three'))
    expect(await messages(session)).toEqual(['one', 'three'])
    expect((await session.activate('main')).body).toEqual({ branch_id: 'main' })
    expect(await messages(session)).toEqual(['one', 'two'])
    await requireProven(session)
  })

  it('may be of a fork, and from the session’s first record', async () => {
    const session = await spoken('one', 'two')
    const first = branchOf(await session.fork(session.ids[1] ?? ''))
    const { records } = await session.append(userSays('three'))
    const second = branchOf(await session.fork(records[0]?.id ?? ''))
    const [created] = await session.journal()
    const third = branchOf(await session.fork(created?.id ?? ''))
    expect(await messages(session)).toEqual([])
    const { body } = await session.branches()
    expect(body).toMatchObject({
      data: [
        { branch_id: 'main', source_branch_id: null, from_record_id: created?.id, active: false },
        { branch_id: first, source_branch_id: 'main', from_record_id: session.ids[1], active: false },
        { branch_id: second, source_branch_id: first, from_record_id: records[0]?.id, active: false },
        { branch_id: third, source_branch_id: 'main', from_record_id: created?.id, active: true },
      ],
      next_cursor: null,
    })
    const last = (await session.journal()).at(-1)
    expect(
      z
        .object({ data: z.array(z.unknown()) })
        .parse(body)
        .data.at(-1),
    ).toMatchObject({ leaf_record_id: last?.id })
    await requireProven(session)
  })

  it('is refused from what is no record of the agent', async () => {
    const session = await spoken('one')
    const before = await session.item()
    const event = (await session.journal()).find(({ kind }) => kind === 'event')
    for (const from of [newId('evt'), event?.id ?? ''])
      expect(problemOf(await session.fork(from))).toMatchObject({
        ...{ code: 'invalid_request', errors: [{ path: 'from_record_id' }] },
      })
    expect(problemOf(await session.fork('evt_x'))).toMatchObject({ errors: [{ path: 'from_record_id' }] })
    expect((await session.item()).journal_head).toEqual(before.journal_head)
  })

  it('is refused where a call has no result, by the reducer’s reason', async () => {
    const session = await stack.begin('ValidateGate')
    const asked = asks({})
    const [call = ''] = callsOf(asked)
    const { records } = await session.append(...order.toolsAsked(asked), ...starts(call))
    const before = await session.item()
    for (const { id } of records) {
      const answer = await session.fork(id)
      expect(answer.status).toBe(409)
      expect(problemOf(answer)).toMatchObject({
        code: 'illegal_transition',
        detail: expect.stringContaining('unsafe_fork_point'),
      })
    }
    expect((await session.item()).journal_head).toEqual(before.journal_head)
    const ended = await session.append(...ends(call, [{ type: 'text', text: 'done' }]))
    expect((await session.fork(ended.records[1]?.id ?? '')).status).toBe(201)
    await requireProven(session)
  })

  it('and activating are refused while an engine runs and once the session has ended', async () => {
    const running = await stack.begin('Code')
    const { records } = await running.append(userSays('one'))
    const ended = await spoken('one')
    await transition(stack.platform, ended.key, (item) => cancel(item, null, ada))
    for (const [session, from, code] of [
      [running, records[0]?.id ?? '', 'illegal_transition'],
      [ended, ended.ids[0] ?? '', 'already_decided'],
    ] as const) {
      const before = await session.item()
      for (const answer of [await session.fork(from), await session.activate('main')]) {
        expect(answer.status).toBe(409)
        expect(problemOf(answer)).toMatchObject({ code, detail: expect.stringMatching(/\S/) })
      }
      expect((await session.item()).journal_head).toEqual(before.journal_head)
    }
  })

  it('is done once for each Idempotency-Key', async () => {
    const session = await spoken('one')
    const headers = { 'idempotency-key': newId('evt') }
    const first = await session.fork(session.ids[0] ?? '', headers)
    const again = await session.fork(session.ids[0] ?? '', headers)
    expect(again.headers.get('idempotency-replayed')).toBe('true')
    expect(again.body).toEqual(first.body)
    const { body } = await session.branches()
    expect(z.object({ data: z.array(z.unknown()) }).parse(body).data).toHaveLength(2)
  })

  it('belongs to operators of the team; viewers see the branches', async () => {
    const session = await spoken('one')
    const { viewer } = stack.tokens
    const path = `/v1/sessions/${session.id}/branches`
    const body = { from_record_id: session.ids[0] }
    for (const answer of [
      await stack.call(path, { token: viewer, body }),
      await stack.call(`${path}/main/activate`, { token: viewer, body: {} }),
      await stack.call(path, { token: session.token, body }),
    ])
      expect([answer.status, problemOf(answer).code]).toEqual([403, 'forbidden'])
    const unknown = `/v1/sessions/${newId('ses')}/branches`
    expect((await stack.call(unknown, { body })).status).toBe(404)
    expect((await stack.call(unknown)).status).toBe(404)
  })
})

describe('activating', () => {
  it('the branch that is active already writes nothing', async () => {
    const session = await spoken('one')
    const before = await session.item()
    expect((await session.activate('main')).status).toBe(200)
    expect((await session.item()).revision).toBe(before.revision)
  })

  it('is refused for a branch that is not there, or is none', async () => {
    const session = await spoken('one')
    expect((await session.activate(newId('brn'))).status).toBe(404)
    expect(problemOf(await session.activate('other'))).toMatchObject({ errors: [{ path: 'branch_id' }] })
  })
})

it('a worker’s records, a person’s forks and guidance that race leave one journal that verifies', async () => {
  const session = await spoken('one')
  const [from = ''] = session.ids
  const statuses: number[] = []
  const said = async () => {
    for (let n = 0; n < 5; n++)
      statuses.push((await session.entries(newId('evt'), [userSays(`${n}`), userSays(`${n}, again`)])).status)
  }
  const forked = async () => {
    for (let n = 0; n < 5; n++)
      statuses.push((await session.fork(from)).status, (await session.activate('main')).status)
  }
  const steered = async () => {
    for (let n = 0; n < 8; n++)
      await transition(stack.platform, session.key, (item) => steer(item, `${n}`, ada))
  }
  await Promise.all([said(), forked(), steered()])
  expect(new Set(statuses)).toEqual(new Set([200, 201]))
  const types = (await session.journal()).map(({ type }) => type)
  expect(types.filter((type) => type === 'message_committed')).toHaveLength(11)
  expect(types.filter((type) => type === 'branch_created')).toHaveLength(5)
  expect(types.filter((type) => type === 'operator_guidance')).toHaveLength(8)
  await requireProven(session)
  expect(stack.faults).toEqual([])
})
