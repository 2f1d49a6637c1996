import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { newId, newSecret } from '../../../lib/ids.ts'
import { type QuietStack, requireProblem, startQuietStack } from './quiet-stack.ts'

let stack: QuietStack
beforeAll(async () => {
  stack = await startQuietStack()
}, 60_000)
afterAll(() => stack.close())

const claim = newSecret()

describe('who may call', () => {
  it.each([
    ['no token', undefined],
    ['an unknown token', 'Bearer gh_unknown'],
    ['another scheme', 'Basic YTpi'],
    ['an empty token', 'Bearer '],
    ['two tokens', 'Bearer gh_a gh_b'],
    ['a very long token', `Bearer gh_${'x'.repeat(6000)}`],
  ])('answers 401 to %s', async (_, authorization) => {
    for (const path of ['/v1/sessions', '/v1/nothing', '/worker/v1/command?epoch=1']) {
      const answer = await stack.call(path, { token: null, headers: authorization ? { authorization } : {} })
      requireProblem(answer, 'unauthenticated')
      expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer/)
    }
  })

  it('takes the scheme’s name in any case', async () => {
    const headers = { authorization: `bEARER ${stack.adminToken}` }
    expect((await stack.call('/v1/sessions', { token: null, headers })).status).toBe(200)
  })

  it('lets each role do what it may and no more', async () => {
    requireProblem(
      await stack.post('/v1/sessions', stack.start(), { token: stack.tokens.viewer }),
      'forbidden',
    )
    const { id } = await stack.create({}, { token: stack.tokens.operator })
    expect((await stack.call(`/v1/sessions/${id}`, { token: stack.tokens.viewer })).status).toBe(200)
    const review = { review_id: newId('rev') }
    for (const [path, body] of [
      ['contract/confirm', { contract_hash: 'sha256:x' }],
      ['review/approve', review],
      ['review/reject', { ...review, reason: 'no' }],
      ['review/changes', { ...review, text: 'more' }],
    ] as const) {
      requireProblem(
        await stack.post(`/v1/sessions/${id}/${path}`, body, { token: stack.tokens.operator }),
        'forbidden',
      )
      requireProblem(
        await stack.post(`/v1/sessions/${id}/${path}`, body, { token: stack.tokens.approver }),
        'illegal_transition',
      )
    }
    requireProblem(
      await stack.post(`/v1/sessions/${id}/cancel`, {}, { token: stack.tokens.viewer }),
      'forbidden',
    )
    expect((await stack.post(`/v1/sessions/${id}/cancel`, {}, { token: stack.tokens.operator })).status).toBe(
      200,
    )
  })

  it('looks at the role before it looks at what was sent', async () => {
    const session = `/v1/sessions/${newId('ses')}`
    const bodies = ['{', '[]', '{"unknown": 1}', 'x'.repeat(10_000)]
    for (const [path, role] of [
      ['/v1/sessions', 'viewer'],
      ['/v1/imports', 'viewer'],
      [`${session}/continue`, 'viewer'],
      [`${session}/cancel`, 'viewer'],
      [`${session}/steer`, 'viewer'],
      [`${session}/branches`, 'viewer'],
      [`${session}/contract/revise`, 'viewer'],
      [`${session}/contract/confirm`, 'operator'],
      [`${session}/gate`, 'operator'],
      [`${session}/review/approve`, 'operator'],
      [`${session}/review/reject`, 'operator'],
      [`${session}/review/changes`, 'operator'],
      ['/v1/sessions/ses_bad/cancel', 'viewer'],
    ] as const)
      for (const raw of bodies) {
        const headers = { 'content-type': raw === '[]' ? 'text/plain' : 'application/json' }
        requireProblem(await stack.call(path, { raw, headers, token: stack.tokens[role] }), 'forbidden')
      }
    for (const raw of bodies) requireProblem(await stack.call('/worker/v1/lease', { raw }), 'forbidden')
  })

  it('shows another team’s session to nobody: every call on it answers 404', async () => {
    const { id } = await stack.create()
    const token = stack.tokens.stranger
    for (const path of [
      '',
      '/review',
      '/diff',
      '/events',
      '/journal',
      '/journal/verify',
      '/snapshot',
      '/transcript',
      '/history',
      '/artifacts/a',
    ])
      requireProblem(await stack.call(`/v1/sessions/${id}${path}`, { token }), 'not_found')
    requireProblem(await stack.post(`/v1/sessions/${id}/cancel`, {}, { token }), 'not_found')
    requireProblem(
      await stack.post(`/v1/sessions/${id}/contract/confirm`, { contract_hash: 'x' }, { token }),
      'not_found',
    )
    const list = await stack.call('/v1/sessions', { token })
    expect(list.json).toEqual({ data: [], damaged: [], next_cursor: null })
    await stack.post(`/v1/sessions/${id}/cancel`, {})
  })

  it('keeps people and workers to their own calls', async () => {
    const { id } = await stack.create()
    const who = { kind: 'worker', team: 'local', session_id: id, worker_id: newId('wrk') } as const
    const token = await stack.tokenFor(who)
    for (const path of ['/v1/sessions', `/v1/sessions/${id}`, `/v1/sessions/${id}/journal`])
      requireProblem(await stack.call(path, { token }), 'forbidden')
    requireProblem(await stack.post(`/v1/sessions/${id}/cancel`, {}, { token }), 'forbidden')
    requireProblem(await stack.post('/v1/sessions', stack.start(), { token }), 'forbidden')
    requireProblem(await stack.post('/worker/v1/lease', { claim }), 'forbidden')
    requireProblem(await stack.call('/worker/v1/command?epoch=1'), 'forbidden')
    await stack.post(`/v1/sessions/${id}/cancel`, {})
  })

  it('tells a worker that was never launched, or under a lease that it does not hold, to stop', async () => {
    const { id } = await stack.create()
    const who = { kind: 'worker', team: 'local', session_id: id, worker_id: newId('wrk') } as const
    const token = await stack.tokenFor(who)
    const uploads = [{ kind: 'artifact', name: 'a' }]
    const facts = [{ type: 'error', data: { message: 'x' } }]
    const result = { outcome: 'Preflight', problems: [] }
    requireProblem(await stack.post('/worker/v1/lease', { claim }, { token }), 'superseded')
    requireProblem(await stack.post('/worker/v1/heartbeat', { epoch: 1 }, { token }), 'superseded')
    requireProblem(
      await stack.post('/worker/v1/entries', { epoch: 1, batch_id: 'b', facts }, { token }),
      'superseded',
    )
    requireProblem(await stack.post('/worker/v1/uploads', { epoch: 1, uploads }, { token }), 'superseded')
    const command_id = newId('cmd')
    requireProblem(
      await stack.post('/worker/v1/complete', { epoch: 1, command_id, result }, { token }),
      'superseded',
    )
    requireProblem(await stack.call('/worker/v1/command?epoch=1&wait_ms=0', { token }), 'superseded')
    const climbing = { epoch: 1, command_id: '../../../../x', result }
    requireProblem(await stack.post('/worker/v1/complete', climbing, { token }), 'invalid_request')
    const upload = { epoch: 1, uploads: [{ kind: 'artifact', name: '../x' }] }
    requireProblem(await stack.post('/worker/v1/uploads', upload, { token }), 'invalid_request')
    await stack.post(`/v1/sessions/${id}/cancel`, {})
  })
})

describe('a worker under its lease', () => {
  const leased = async () => {
    const { id } = await stack.create()
    const worker_id = newId('wrk')
    const key = { team: 'local', id }
    const started = {
      id: worker_id,
      status: 'starting',
      started_at: new Date().toISOString(),
      stopped_at: null,
    } as const
    await stack.platform.sessions.update(key, () => ({
      ...{ actor: { kind: 'system', id: 'test' }, facts: [], runtime: { compute: started } },
    }))
    const token = await stack.tokenFor({ kind: 'worker', ...{ team: 'local', session_id: id, worker_id } })
    const lease = await stack.post('/worker/v1/lease', { claim }, { token })
    const { epoch } = z.object({ epoch: z.number() }).parse(lease.json)
    const entries = (batch_id: string, messages: string[]) => {
      const facts = messages.map((message) => ({ type: 'error', data: { message } }))
      return stack.post('/worker/v1/entries', { epoch, batch_id, facts }, { token })
    }
    return { id, token, epoch, entries }
  }

  it('appends a batch once, however often it is sent', async () => {
    const { id, entries } = await leased()
    const answers = [await entries('one', ['a', 'b']), await entries('one', ['a', 'b'])]
    expect(answers.map(({ status }) => status)).toEqual([200, 200])
    expect(answers[1]?.json).toEqual(answers[0]?.json)
    const { text } = await stack.call(`/v1/sessions/${id}/journal`)
    expect(text.match(/"message":"a"/g)).toHaveLength(1)
    await stack.post(`/v1/sessions/${id}/cancel`, {})
    requireProblem(await entries('two', ['c']), 'superseded')
  })

  it('may report half a character, and the journal still proves', async () => {
    const { id, entries } = await leased()
    expect((await entries('one', ['half \ud83d', 'NUL \0'])).status).toBe(200)
    expect((await stack.call(`/v1/sessions/${id}/journal/verify`)).json).toMatchObject({ ok: true })
    await stack.post(`/v1/sessions/${id}/cancel`, {})
  })

  it('is refused a batch that the session item has no room for', async () => {
    const { id, entries } = await leased()
    requireProblem(
      await entries(
        'big',
        Array.from({ length: 190 }, () => 'x'.repeat(4000)),
      ),
      'invalid_request',
    )
    expect(
      (
        await entries(
          'small',
          Array.from({ length: 190 }, () => 'x'.repeat(1000)),
        )
      ).status,
    ).toBe(200)
    await stack.post(`/v1/sessions/${id}/cancel`, {})
  })
})

it('met no fault of ours on the way', () => {
  expect(stack.faults).toEqual([])
})
