import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { errorCodes } from '../../../lib/errors.ts'
import { newId } from '../../../lib/ids.ts'
import { limits } from '../../../lib/limits.ts'
import { type Answer, startTestStack, type TestStack } from '../../support/stack.ts'

let stack: TestStack
const tokens = { viewer: '', operator: '', approver: '', stranger: '', worker: '' }
const person = { kind: 'person', team: 'local' } as const

beforeAll(async () => {
  stack = await startTestStack({ concurrency: 1 })
  // The one slot is taken, so the sessions of these tests wait in the queue and cost nothing.
  await stack.platform.admission.acquire('local', 'ses_nobody', 1)
  for (const role of ['viewer', 'operator', 'approver'] as const)
    tokens[role] = await stack.tokenFor({ ...person, principal: role, role })
  tokens.stranger = await stack.tokenFor({ ...person, team: 'other', principal: 'eve', role: 'admin' })
}, 60_000)
afterAll(() => stack.close())

const post = (path: string, body: unknown, more: Parameters<TestStack['call']>[1] = {}) =>
  stack.call(path, { body, ...more })
const create = async (more: Record<string, unknown> = {}, how: Parameters<TestStack['call']>[1] = {}) => {
  const answer = await post('/v1/sessions', stack.start(more), how)
  expect(answer.status, answer.text).toBe(201)
  return z.object({ id: z.string(), version: z.number() }).loose().parse(answer.json)
}

/** A problem answer in its whole form (RFC 9457 and API.md). */
const requireProblem = (answer: Answer, code: keyof typeof errorCodes) => {
  expect(answer.json, answer.text).toMatchObject({ code })
  expect(answer.status).toBe(errorCodes[code].status)
  expect(answer.headers.get('content-type')).toBe('application/problem+json')
  expect(answer.json).toMatchObject({
    ...{ status: answer.status, title: errorCodes[code].title, type: `urn:gatehouse:problem:${code}` },
    request_id: answer.headers.get('x-request-id'),
    detail: expect.stringMatching(/\S/),
  })
  expect(answer.text).not.toMatch(/node_modules|\bat .*\.ts:|ConditionalCheck|Dynamo|ZodError/)
}
const paths = (answer: Answer) =>
  z
    .array(z.object({ path: z.string(), message: z.string() }))
    .parse(answer.json.errors)
    .map(({ path }) => path)

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
    requireProblem(await post('/v1/sessions', stack.start(), { token: tokens.viewer }), 'forbidden')
    const { id } = await create({}, { token: tokens.operator })
    expect((await stack.call(`/v1/sessions/${id}`, { token: tokens.viewer })).status).toBe(200)
    const review = { review_id: newId('rev') }
    for (const [path, body] of [
      ['contract/confirm', { contract_hash: 'sha256:x' }],
      ['review/approve', review],
      ['review/reject', { ...review, reason: 'no' }],
      ['review/changes', { ...review, text: 'more' }],
    ] as const) {
      requireProblem(await post(`/v1/sessions/${id}/${path}`, body, { token: tokens.operator }), 'forbidden')
      requireProblem(
        await post(`/v1/sessions/${id}/${path}`, body, { token: tokens.approver }),
        'illegal_transition',
      )
    }
    requireProblem(await post(`/v1/sessions/${id}/cancel`, {}, { token: tokens.viewer }), 'forbidden')
    expect((await post(`/v1/sessions/${id}/cancel`, {}, { token: tokens.operator })).status).toBe(200)
  })

  it('shows another team’s session to nobody: every call on it answers 404', async () => {
    const { id } = await create()
    const token = tokens.stranger
    for (const path of [
      '',
      '/review',
      '/diff',
      '/events',
      '/journal',
      '/journal/verify',
      '/history',
      '/artifacts/a',
    ])
      requireProblem(await stack.call(`/v1/sessions/${id}${path}`, { token }), 'not_found')
    requireProblem(await post(`/v1/sessions/${id}/cancel`, {}, { token }), 'not_found')
    requireProblem(
      await post(`/v1/sessions/${id}/contract/confirm`, { contract_hash: 'x' }, { token }),
      'not_found',
    )
    const list = await stack.call('/v1/sessions', { token })
    expect(list.json).toEqual({ data: [], next_cursor: null })
    await post(`/v1/sessions/${id}/cancel`, {})
  })

  it('keeps people and workers to their own calls', async () => {
    const { id } = await create()
    const who = { kind: 'worker', team: 'local', session_id: id, worker_id: newId('wrk') } as const
    const token = await stack.tokenFor(who)
    for (const path of ['/v1/sessions', `/v1/sessions/${id}`, `/v1/sessions/${id}/journal`])
      requireProblem(await stack.call(path, { token }), 'forbidden')
    requireProblem(await post(`/v1/sessions/${id}/cancel`, {}, { token }), 'forbidden')
    requireProblem(await post('/v1/sessions', stack.start(), { token }), 'forbidden')
    requireProblem(await post('/worker/v1/lease', {}), 'forbidden')
    requireProblem(await stack.call('/worker/v1/command?epoch=1'), 'forbidden')
    await post(`/v1/sessions/${id}/cancel`, {})
  })

  it('tells a worker that was never launched, or under a lease that it does not hold, to stop', async () => {
    const { id } = await create()
    const who = { kind: 'worker', team: 'local', session_id: id, worker_id: newId('wrk') } as const
    const token = await stack.tokenFor(who)
    const uploads = [{ kind: 'artifact', name: 'a' }]
    const facts = [{ type: 'error', data: { message: 'x' } }]
    const result = { outcome: 'Preflight' }
    requireProblem(await post('/worker/v1/lease', {}, { token }), 'superseded')
    requireProblem(await post('/worker/v1/heartbeat', { epoch: 1 }, { token }), 'superseded')
    requireProblem(
      await post('/worker/v1/entries', { epoch: 1, batch_id: 'b', facts }, { token }),
      'superseded',
    )
    requireProblem(await post('/worker/v1/uploads', { epoch: 1, uploads }, { token }), 'superseded')
    const command_id = newId('cmd')
    requireProblem(
      await post('/worker/v1/complete', { epoch: 1, command_id, result }, { token }),
      'superseded',
    )
    requireProblem(await stack.call('/worker/v1/command?epoch=1&wait_ms=0', { token }), 'superseded')
    const climbing = { epoch: 1, command_id: '../../../../x', result }
    requireProblem(await post('/worker/v1/complete', climbing, { token }), 'invalid_request')
    const upload = { epoch: 1, uploads: [{ kind: 'artifact', name: '../x' }] }
    requireProblem(await post('/worker/v1/uploads', upload, { token }), 'invalid_request')
    await post(`/v1/sessions/${id}/cancel`, {})
  })
})

describe('a body that is not what it should be', () => {
  const type = { 'content-type': 'application/json' }
  const raw = (body: BodyInit, headers: Record<string, string> = type) =>
    stack.call('/v1/sessions', { raw: body, headers })

  it.each(['', '{', 'nonsense', '{"a":1}}', '\ufeff{', "{'a':1}"])('answers 400 to %j', async (text) => {
    requireProblem(
      await stack.call('/v1/sessions', { method: 'POST', raw: text, headers: type }),
      'invalid_json',
    )
  })

  it.each(['null', '[]', '"text"', '1', 'true'])(
    'answers 422 to the JSON %s, which is no object',
    async (text) => {
      requireProblem(await raw(text), 'invalid_request')
    },
  )

  it.each(['text/plain', 'application/x-www-form-urlencoded', 'application/jsonp', 'multipart/form-data'])(
    'answers 415 to %s',
    async (name) => {
      requireProblem(
        await raw(JSON.stringify(stack.start()), { 'content-type': name }),
        'unsupported_media_type',
      )
    },
  )

  it('takes JSON with a character set', async () => {
    const answer = await raw('{}', { 'content-type': 'Application/JSON; charset=utf-8' })
    requireProblem(answer, 'invalid_request')
    expect(paths(answer)).toEqual(['repo', 'intent'])
  })

  it('names every unknown field by its path, at any depth', async () => {
    const contract = { checks: [{ name: 'a', command: './b', comand: 'x' }], protected: [] }
    const answer = await post('/v1/sessions', stack.start({ contract, intnet: 'x', delivery: { kid: 1 } }))
    requireProblem(answer, 'invalid_request')
    expect(paths(answer)).toEqual(
      expect.arrayContaining(['intnet', 'contract.protected', 'contract.checks.0.comand', 'delivery.kid']),
    )
  })

  it('answers 413 to more than a megabyte, whether or not its length is told', async () => {
    const big = JSON.stringify(stack.start({ intent: 'x'.repeat(2_000_000) }))
    requireProblem(await raw(big), 'payload_too_large')
    const chunks = new ReadableStream({
      start(controller) {
        for (let at = 0; at < big.length; at += 65_536)
          controller.enqueue(new TextEncoder().encode(big.slice(at, at + 65_536)))
        controller.close()
      },
    })
    requireProblem(await raw(chunks), 'payload_too_large')
    expect(stack.faults).toEqual([])
  })

  it('refuses half a megabyte of brackets', async () => {
    const answer = await raw(`{"repo":${'['.repeat(200_000)}${']'.repeat(200_000)}}`)
    expect(answer.status, answer.text).toBe(422)
  })

  it.each([
    ['an intent of more than 16 KiB', { intent: 'x'.repeat(limits.intent + 1) }, 'intent'],
    [
      'an intent of as many characters, but more bytes',
      { intent: 'ü'.repeat(limits.intent / 2 + 1) },
      'intent',
    ],
    ['an empty intent', { intent: ' \n ' }, 'intent'],
    ['NUL in the intent', { intent: 'a\0b' }, 'intent'],
    ['half a character in the intent', { intent: 'a \ud83d b' }, 'intent'],
    ['half a character in a label', { labels: { a: '\udc00' } }, 'labels.a'],
    ['NUL in the base', { base: 'main\0' }, 'base'],
    ['NUL in the command', { engine_command: ['a', 'b\0'] }, 'engine_command.1'],
    ['no iterations', { max_iterations: 0 }, 'max_iterations'],
    ['half an iteration', { max_iterations: 1.5 }, 'max_iterations'],
    ['too many iterations', { max_iterations: limits.iterations.max + 1 }, 'max_iterations'],
    ['too much time', { max_wall_secs: limits.wallSecs.max + 1 }, 'max_wall_secs'],
    ['an unknown mode', { mode: 'yolo' }, 'mode'],
    [
      'too many labels',
      { labels: Object.fromEntries([...'abcdefghijklmnopq'].map((l) => [l, ''])) },
      'labels',
    ],
    ['a repository that is a number', { repo: 7 }, 'repo'],
  ])('answers 422 to %s and names the field', async (_, more, path) => {
    const answer = await post('/v1/sessions', stack.start(more))
    requireProblem(answer, 'invalid_request')
    expect(paths(answer)).toContain(path)
  })

  it.each([
    ['without checks', { checks: [] }],
    ['with a blank command', { checks: [{ name: 'a', command: ' ' }] }],
    ['with two checks of one name', { checks: ['./x', './y'].map((command) => ({ name: 'a', command })) }],
    [
      'of more than 64 KiB',
      {
        checks: Array.from({ length: 9 }, (_, n) => ({ name: `c${n}`, command: 'x'.repeat(limits.command) })),
      },
    ],
  ])('answers 422 invalid_contract to a contract %s', async (_, contract) => {
    const answer = await post('/v1/sessions', stack.start({ contract }))
    requireProblem(answer, 'invalid_contract')
    for (const path of paths(answer)) expect(path).toMatch(/^contract/)
  })

  it.each([
    ['relative', 'some/where', /full address/],
    ['http', 'http://example.com/a', /http:\/\/ is not accepted/],
    ['of scp form', 'git@example.com:a/b', /ssh:\/\//],
    ['of a remote helper', 'ext::sh -c touch% /tmp/x', /[Rr]emote helpers/],
    ['like an option', '--upload-pack=touch /tmp/x', /option/],
    ['like an option to ssh', 'ssh://-oProxyCommand=x/a', /option/],
    ['with credentials', 'https://user:secret@example.com/a', /credentials/],
    ['with a token', 'https://token@example.com/a', /credentials/],
    ['with a control character', 'https://example.com/a\nb', /control character/],
    ['of another scheme', 'git://example.com/a', /not accepted/],
  ])('refuses a repository address %s, and says why', async (_, repo, reason) => {
    const answer = await post('/v1/sessions', stack.start({ repo }))
    requireProblem(answer, 'repository_refused')
    expect(answer.json.detail).toMatch(reason)
    expect(answer.text).not.toContain('secret')
  })

  it.each([
    ['native', {}],
    ['foreman', {}],
    ['foreman:x', {}],
    ['external:claude-code', {}],
    ['gpt', {}],
    ['auto', { engine_command: null }],
    ['external:command', { engine_command: null }],
    ['external:command', { engine_command: '  ' }],
  ])('refuses the engine %s with %j, and never replaces it', async (engine, more) => {
    requireProblem(await post('/v1/sessions', stack.start({ engine, ...more })), 'engine_unavailable')
  })

  it.each([
    { until: 'code' },
    { yes_ship: true },
    { model: 'x' },
    { budget_usd: 1 },
    { delivery: { kind: 'pull_request' } },
    { delivery: { kind: 'branch', branch: 'mine' } },
    { keep_workspace_on_failure: true },
    { distributed: true },
    { workers: ['a'] },
    { browser: true },
    { constraints: ['x'] },
  ])('refuses %j, which this version does not do, rather than ignore it', async (more) => {
    requireProblem(await post('/v1/sessions', stack.start(more)), 'not_available')
  })

  it('starts nothing for any of them', async () => {
    const { data } = (await stack.call('/v1/sessions?limit=100', { token: tokens.viewer })).json
    const live = z
      .array(z.object({ state: z.string() }))
      .parse(data)
      .filter(({ state }) => state !== 'abandoned')
    expect(live).toEqual([])
  })
})

describe('every answer', () => {
  it('carries a request id, the caller’s own where it has one', async () => {
    const calls = ['/healthz', '/v1/sessions', '/nothing', '/openapi.json', '/v1/sessions/ses_bad'] as const
    for (const path of calls) {
      const answer = await stack.call(path)
      expect(answer.headers.get('x-request-id'), path).toMatch(/^\S{8,}$/)
    }
    const headers = { 'x-request-id': 'from-the-caller-1' }
    const told = await stack.call('/nothing', { headers })
    expect(told.headers.get('x-request-id')).toBe('from-the-caller-1')
    expect(told.json.request_id).toBe('from-the-caller-1')
    const long = await stack.call('/nothing', { headers: { 'x-request-id': 'x'.repeat(500) } })
    expect(long.headers.get('x-request-id')).not.toMatch(/^x{100}/)
  })

  it.each([
    ['GET', '/nothing'],
    ['GET', '/v1/nothing'],
    ['DELETE', '/v1/sessions'],
    ['PUT', '/v1/sessions/ses_x'],
    ['PATCH', '/healthz'],
    ['GET', '/v1/sessions/x/y/z'],
    ['GET', '//v1/sessions'],
  ])('to %s %s, which is not there, is a problem', async (method, path) => {
    const answer = await stack.call(path, { method })
    expect([404, 405, 422]).toContain(answer.status)
    expect(answer.headers.get('content-type')).toBe('application/problem+json')
  })

  it.each(['ses_', 'ses_x', 'gate_01h455vb4pex5vsknk084sn02q', '..%2f..', 'SES_01h455vb4pex5vsknk084sn02q'])(
    'to the malformed id %s is 422 or 404, and no fault of ours',
    async (id) => {
      for (const path of ['', '/events', '/journal', '/review', '/history']) {
        const { status } = await stack.call(`/v1/sessions/${id}${path}`)
        expect([404, 422]).toContain(status)
      }
    },
  )

  it('to an id that nobody has is 404', async () => {
    const id = newId('ses')
    for (const path of ['', '/events', '/journal', '/journal/verify', '/review', '/diff', '/history'])
      requireProblem(await stack.call(`/v1/sessions/${id}${path}`), 'not_found')
    requireProblem(await post(`/v1/sessions/${id}/cancel`, {}), 'not_found')
    requireProblem(await post(`/v1/sessions/${id}/contract/confirm`, { contract_hash: 'x' }), 'not_found')
  })

  it('to HEAD is that to GET without its body', async () => {
    const answer = await stack.call('/healthz', { method: 'HEAD', token: null })
    expect([answer.status, answer.text]).toEqual([200, ''])
  })
})

describe('the service', () => {
  it('says that it is there, to anybody', async () => {
    const answer = await stack.call('/healthz', { token: null })
    expect(answer.json).toEqual({ status: 'ok', version: expect.stringMatching(/^\d+\.\d+\.\d+/) })
  })

  it('describes itself: OpenAPI 3.1 with every route, every schema resolved', async () => {
    const { json, text } = await stack.call('/openapi.json', { token: null })
    const spec = z
      .object({
        openapi: z.literal('3.1.0'),
        paths: z.record(
          z.string(),
          z.record(z.string(), z.object({ responses: z.record(z.string(), z.unknown()) })),
        ),
        components: z.object({
          schemas: z.record(z.string(), z.unknown()),
          securitySchemes: z.object({ token: z.unknown() }),
        }),
      })
      .parse(json)
    const routes = Object.entries(spec.paths).flatMap(([path, of]) =>
      Object.keys(of).map((m) => `${m.toUpperCase()} ${path}`),
    )
    expect(routes.toSorted()).toEqual(
      [
        ...['GET /healthz', 'GET /v1/sessions', 'POST /v1/sessions', 'GET /v1/sessions/{id}'],
        ...[
          'contract/confirm',
          'contract/revise',
          'review/approve',
          'review/reject',
          'review/changes',
          'cancel',
        ].map((path) => `POST /v1/sessions/{id}/${path}`),
        ...['review', 'diff', 'events', 'journal', 'journal/verify', 'history', 'artifacts/{name}'].map(
          (path) => `GET /v1/sessions/{id}/${path}`,
        ),
        ...['lease', 'heartbeat', 'entries', 'uploads', 'complete'].map((path) => `POST /worker/v1/${path}`),
        'GET /worker/v1/command',
      ].toSorted(),
    )
    for (const [, name] of text.matchAll(/"#\/components\/schemas\/([^"]+)"/g))
      expect(spec.components.schemas).toHaveProperty([name ?? ''])
  })

  it('serves its documentation as a page', async () => {
    const answer = await stack.call('/docs', { token: null })
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toMatch(/^text\/html/)
    expect(answer.text).toContain('/openapi.json')
  })
})

describe('an Idempotency-Key', () => {
  const withKey = (key: string, more: Record<string, unknown> = {}) =>
    post('/v1/sessions', stack.start(more), { headers: { 'idempotency-key': key } })

  it('replays the first answer, byte for byte', async () => {
    const first = await withKey('replayed')
    const second = await withKey('replayed')
    expect([first.status, second.status]).toEqual([201, 201])
    expect(second.text).toBe(first.text)
    expect(first.headers.get('idempotency-replayed')).toBeNull()
    expect(second.headers.get('idempotency-replayed')).toBe('true')
    for (const name of ['location', 'etag', 'content-type'])
      expect(second.headers.get(name)).toBe(first.headers.get(name))
    expect(second.headers.get('x-request-id')).toMatch(/^\S{8,}$/)
    expect(second.headers.get('x-request-id')).not.toBe(first.headers.get('x-request-id'))
  })

  it('refuses another body, and another path', async () => {
    const { json } = await withKey('mismatched')
    requireProblem(await withKey('mismatched', { intent: 'Something else' }), 'idempotency_mismatch')
    const headers = { 'idempotency-key': 'mismatched' }
    requireProblem(await post(`/v1/sessions/${json.id}/cancel`, {}, { headers }), 'idempotency_mismatch')
  })

  it('makes one session of ten calls at once', async () => {
    const answers = await Promise.all(Array.from({ length: 10 }, () => withKey('at-once')))
    for (const { status } of answers) expect([201, 409]).toContain(status)
    const ids = new Set(answers.filter(({ status }) => status === 201).map(({ json }) => json.id))
    expect(ids.size).toBe(1)
    expect((await withKey('at-once')).json.id).toBe([...ids][0])
  })

  it('is free again after a refusal, so a corrected body may follow', async () => {
    requireProblem(await withKey('corrected', { intent: '' }), 'invalid_request')
    requireProblem(await withKey('corrected', { repo: 'http://x/y' }), 'repository_refused')
    expect((await withKey('corrected')).status).toBe(201)
  })

  it('makes one session also when the first call failed on our side after it had written', async () => {
    const { start } = stack.platform.machine
    stack.platform.machine.start = () => Promise.reject(new Error('the service is away'))
    const failed = await withKey('failed').finally(() => {
      stack.platform.machine.start = start
    })
    requireProblem(failed, 'internal')
    stack.faults.length = 0
    const before = await stack.call('/v1/sessions?limit=1')
    const again = await withKey('failed')
    expect(again.status).toBe(201)
    expect(before.json.data).toMatchObject([{ id: again.json.id }])
    expect(again.headers.get('idempotency-replayed')).toBeNull()
  })

  it('replays a decision', async () => {
    const { id } = await create()
    const headers = { 'idempotency-key': 'decided' }
    const first = await post(`/v1/sessions/${id}/cancel`, { reason: 'enough' }, { headers })
    const second = await post(`/v1/sessions/${id}/cancel`, { reason: 'enough' }, { headers })
    expect(first.json.already_terminal).toBe(false)
    expect(second.text).toBe(first.text)
  })

  it.each([
    ['a blank in it', 'a b'],
    ['129 characters', 'x'.repeat(129)],
  ])('with %s is refused', async (_, key) => {
    requireProblem(await withKey(key), 'invalid_request')
  })

  it('is a team’s own', async () => {
    const { json } = await withKey('shared')
    const headers = { 'idempotency-key': 'shared' }
    const other = await post('/v1/sessions', stack.start(), { headers, token: tokens.stranger })
    expect(other.status).toBe(201)
    expect(other.json.id).not.toBe(json.id)
    await post(`/v1/sessions/${other.json.id}/cancel`, {}, { token: tokens.stranger })
  })
})

describe('a session', () => {
  it('is answered with its place and its version, and reads the same afterwards', async () => {
    const answer = await post('/v1/sessions', stack.start({ labels: { constructor: 'x', 'ключ 🙂': '' } }))
    expect(answer.status, answer.text).toBe(201)
    expect(answer.headers.get('location')).toBe(`/v1/sessions/${answer.json.id}`)
    expect(answer.headers.get('etag')).toBe(`"${answer.json.version}"`)
    const read = await stack.call(`/v1/sessions/${answer.json.id}`)
    const { updated_at: _, ...stable } = answer.json
    expect(read.json).toMatchObject({ ...stable, labels: { constructor: 'x', 'ключ 🙂': '' } })
  })

  it('is changed under If-Match only at the version named', async () => {
    const { id } = await create()
    const cancel = (match: string) =>
      post(`/v1/sessions/${id}/cancel`, {}, { headers: { 'if-match': match } })
    const stale = await cancel('"0"')
    requireProblem(stale, 'precondition_failed')
    expect(stale.json.session).toMatchObject({ id, state: 'created' })
    requireProblem(await cancel('nonsense'), 'precondition_failed')
    const etag = (await stack.call(`/v1/sessions/${id}`)).headers.get('etag') ?? ''
    const done = await cancel(`"0", ${etag}`)
    expect(done.json).toMatchObject({ already_terminal: false, session: { state: 'abandoned' } })
    expect(done.headers.get('etag')).not.toBe(etag)
  })

  it('is cancelled once; a second cancel succeeds and says that it had ended', async () => {
    const { id } = await create()
    const first = await post(`/v1/sessions/${id}/cancel`, { reason: 'enough' })
    const second = await post(`/v1/sessions/${id}/cancel`, {})
    expect(first.json).toMatchObject({ already_terminal: false, session: { state: 'abandoned', gate: null } })
    expect(second.json).toMatchObject({
      already_terminal: true,
      session: { state: 'abandoned', error: 'enough' },
    })
    for (const [path, body] of [
      ['contract/confirm', { contract_hash: 'x' }],
      ['contract/revise', { contract: { checks: [{ name: 'a', command: './b' }] } }],
      ['review/approve', { review_id: newId('rev') }],
      ['review/reject', { review_id: newId('rev'), reason: 'no' }],
      ['review/changes', { review_id: newId('rev'), text: 'x' }],
    ] as const) {
      const late = await post(`/v1/sessions/${id}/${path}`, body)
      requireProblem(late, 'already_decided')
      expect(late.json.session).toMatchObject({ id, state: 'abandoned' })
    }
    const proof = await stack.call(`/v1/sessions/${id}/journal/verify`)
    expect(proof.json).toMatchObject({ ok: true })
  })

  it('proves its journal, and shows where one was changed behind its back', async () => {
    const { id } = await create()
    await post(`/v1/sessions/${id}/cancel`, {})
    const lines = (await stack.call(`/v1/sessions/${id}/journal`)).text
    expect(lines.split('\n').filter(Boolean).length).toBeGreaterThan(3)
    const { blobs } = stack.platform
    const key = `teams/local/sessions/${id}/journal/000000000000.jsonl`
    const bytes = (await blobs.get(key)) ?? ''
    const verify = () => stack.call(`/v1/sessions/${id}/journal/verify`)
    await blobs.put(key, bytes.replace('Do it', 'Do not'))
    expect((await verify()).json).toMatchObject({ ok: false, problem: { sequence: 0 } })
    await blobs.put(key, `not even JSON\n${bytes}`)
    expect((await verify()).json).toMatchObject({ ok: false, problem: { sequence: 0 } })
    await blobs.put(key, bytes)
    expect((await verify()).json).toMatchObject({ ok: true })
  })
})

describe('a list of sessions', () => {
  const listed = z.object({ data: z.array(z.object({ id: z.string() })), next_cursor: z.string().nullable() })
  const page = async (query: string) => listed.parse((await stack.call(`/v1/sessions?${query}`)).json)
  const walk = async (query: string) => {
    const ids: string[] = []
    for (let cursor = ''; ; ) {
      const { data, next_cursor: next } = await page(`${query}${cursor}`)
      ids.push(...data.map(({ id }) => id))
      if (next === null) return ids
      cursor = `&cursor=${next}`
    }
  }

  it('is newest first, page by page without gap or repeat, under any filter', async () => {
    const made: string[] = []
    for (let n = 0; n < 7; n++)
      made.push((await create({ labels: { lot: 'paged', parity: n % 2 === 0 ? 'even' : 'odd=1' } })).id)
    await post(`/v1/sessions/${made[3]}/cancel`, {})
    const newest = made.toReversed()
    for (const limit of [1, 2, 3, 7, 100]) {
      expect(await walk(`limit=${limit}&label=lot=paged`)).toEqual(newest)
      expect(await walk(`limit=${limit}&label=parity=odd%3D1`)).toEqual([newest[1], newest[3], newest[5]])
      expect(await walk(`limit=${limit}&label=lot=paged&state=abandoned`)).toEqual([made[3]])
      expect(await walk(`limit=${limit}&label=lot=paged&needs_you=true`)).toEqual([])
      expect(await walk(`limit=${limit}&label=lot=paged&needs_you=false`)).toEqual(newest)
    }
    const repo = encodeURIComponent(stack.repository.directory)
    expect((await walk(`limit=5&repo=${repo}`)).slice(0, 7)).toEqual(newest)
    expect(await walk('limit=5&repo=elsewhere')).toEqual([])
  }, 30_000)

  it.each([
    'limit=0',
    'limit=101',
    'limit=x',
    'limit=',
    'state=done',
    'label=x',
    'needs_you=maybe',
    'cursor=nonsense',
    'cursor=',
  ])('refuses ?%s', async (query) => {
    requireProblem(await stack.call(`/v1/sessions?${query}`), 'invalid_request')
  })

  it('has 25 to a page when nothing is said', async () => {
    expect((await page('')).data.length).toBeLessThanOrEqual(limits.pageSize.default)
  })
})

it('met no fault of ours on the way', () => {
  expect(stack.faults).toEqual([])
})
