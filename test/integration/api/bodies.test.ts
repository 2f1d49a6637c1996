import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { newId } from '../../../lib/ids.ts'
import { limits } from '../../../lib/limits.ts'
import { paths, type QuietStack, requireProblem, startQuietStack } from './quiet-stack.ts'

let stack: QuietStack
beforeAll(async () => {
  stack = await startQuietStack()
}, 60_000)
afterAll(() => stack.close())

describe('a body that is not what it should be', () => {
  const type = { 'content-type': 'application/json' }
  const raw = (body: string | ReadableStream, headers: Record<string, string> = type) =>
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
    const answer = await stack.post(
      '/v1/sessions',
      stack.start({ contract, intnet: 'x', delivery: { kid: 1 } }),
    )
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
    ['a mark of direction in a label', { labels: { a: 'x\u202ey' } }, 'labels.a'],
    ['a control character in the name of a label', { labels: { 'a\u0007': 'x' } }, 'labels.a<U+0007>'],
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
    const answer = await stack.post('/v1/sessions', stack.start(more))
    requireProblem(answer, 'invalid_request')
    expect(paths(answer)).toContain(path)
  })

  it.each([1e300, 2 ** 53 + 2, -1e20, 5e-324])(
    'refuses the number %d, which no store would keep',
    async (min) => {
      const shape = { name: 'size', command: './size', baseline: true }
      const differential = { baseline: 'size', expect: { delta_within: { min } } }
      const contract = { checks: [shape, { name: 'grown', command: './size', differential }] }
      const answer = await stack.post('/v1/sessions', stack.start({ contract }))
      requireProblem(answer, 'invalid_request')
      expect(paths(answer)).toEqual(['contract.checks.1.differential.expect.delta_within.min'])
    },
  )

  it('refuses a label that would be lost without a word', async () => {
    const text = JSON.stringify(stack.start()).replace(/}$/, ',"labels":{"__proto__":"x"}}')
    requireProblem(await raw(text), 'invalid_request')
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
    const answer = await stack.post('/v1/sessions', stack.start({ contract }))
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
    const answer = await stack.post('/v1/sessions', stack.start({ repo }))
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
    requireProblem(await stack.post('/v1/sessions', stack.start({ engine, ...more })), 'engine_unavailable')
  })

  it.each([
    { until: 'ship' },
    { model: 'x' },
    { delivery: { kind: 'pull_request' } },
    { delivery: { kind: 'branch', branch: 'mine' } },
    { distributed: true },
    { workers: ['a'] },
    { browser: true },
    { constraints: ['x'] },
  ])('refuses %j, which this version does not do, rather than ignore it', async (more) => {
    requireProblem(await stack.post('/v1/sessions', stack.start(more)), 'not_available')
  })

  it('starts nothing for any of them', async () => {
    const { data } = (await stack.call('/v1/sessions?limit=100', { token: stack.tokens.viewer })).json
    const live = z
      .array(z.object({ state: z.string() }))
      .parse(data)
      .filter(({ state }) => state !== 'abandoned')
    expect(live).toEqual([])
  })
})

describe('the calls of a session that is under way', () => {
  const gate_id = newId('gate')
  const request_id = newId('req')
  const session = `/v1/sessions/${newId('ses')}`

  it.each<[string, Record<string, unknown>, string[]]>([
    ['gate', {}, ['gate_id', 'action']],
    ['gate', { gate_id: 'gate_1', action: 'advance' }, ['gate_id']],
    ['gate', { gate_id: newId('rev'), action: 'advance' }, ['gate_id']],
    ['gate', { gate_id, action: 'approve' }, ['action']],
    ['gate', { gate_id, action: 'abort', note: 'x'.repeat(limits.reason + 1) }, ['note']],
    ['gate', { gate_id, action: 'abort', reason: 'x' }, ['reason']],
    ['steer', {}, ['text']],
    ['steer', { text: ' \n ' }, ['text']],
    ['steer', { text: 'ü'.repeat(limits.steering / 2 + 1) }, ['text']],
    ['steer', { text: 'NUL \0' }, ['text']],
    ['answer', {}, ['request_id', 'text']],
    ['answer', { request_id: 'x', text: 'y' }, ['request_id']],
    ['answer', { request_id, text: '' }, ['text']],
    ['answer', { request_id, text: 'x'.repeat(limits.answer + 1) }, ['text']],
    ['resume', { until: 'ship' }, ['until']],
    ['resume', { until: 'later' }, ['until']],
    ['resume', { to: 'code' }, ['to']],
    ['continue', {}, ['intent']],
    ['continue', { intent: ' ' }, ['intent']],
    ['continue', { intent: 'x', repo: '/elsewhere' }, ['repo']],
    ['continue', { intent: 'x', base: 'main' }, ['base']],
    ['continue', { intent: 'x', max_iterations: 0 }, ['max_iterations']],
    ['cancel', { reason: 1 }, ['reason']],
    ['cancel', { reason: 'red \u001b[31m' }, ['reason']],
  ])('refuses %s with %j', async (call, body, expected) => {
    const answer = await stack.post(`${session}/${call}`, body)
    requireProblem(answer, 'invalid_request')
    expect(paths(answer)).toEqual(expected)
  })

  it.each([
    ['gate', { gate_id, action: 'advance' }],
    ['steer', { text: 'x' }],
    ['answer', { request_id, text: 'x' }],
    ['resume', {}],
    ['continue', { intent: 'x' }],
    ['cancel', {}],
  ])('answers %s for no session of ours with 404', async (call, body) => {
    requireProblem(await stack.post(`${session}/${call}`, body), 'not_found')
  })

  it.each([
    ['gate', { gate_id, action: 'advance' }, 'operator'],
    ['steer', { text: 'x' }, 'viewer'],
    ['answer', { request_id, text: 'x' }, 'viewer'],
    ['resume', {}, 'viewer'],
    ['continue', { intent: 'x' }, 'viewer'],
  ] as const)('keeps %s from a role that is too small', async (call, body, role) => {
    requireProblem(await stack.post(`${session}/${call}`, body, { token: stack.tokens[role] }), 'forbidden')
  })

  it('keeps what is authorised at the start from whoever could not approve it later', async () => {
    const token = stack.tokens.operator
    requireProblem(await stack.post('/v1/sessions', stack.start({ yes_ship: true }), { token }), 'forbidden')
  })

  it('tells a session that waits for a slot where it stands, and what it does not wait for', async () => {
    const { id } = await stack.create()
    const call = (path: string, body: unknown) => stack.post(`/v1/sessions/${id}/${path}`, body)
    requireProblem(await call('gate', { gate_id, action: 'advance' }), 'illegal_transition')
    requireProblem(await call('answer', { request_id, text: 'x' }), 'not_found')
    requireProblem(await call('resume', {}), 'illegal_transition')
    requireProblem(await call('continue', { intent: 'x' }), 'illegal_transition')
    expect((await call('steer', { text: 'x' })).status).toBe(202)
    await call('cancel', {})
    requireProblem(await call('steer', { text: 'x' }), 'already_decided')
  })
})

it('met no fault of ours on the way', () => {
  expect(stack.faults).toEqual([])
})
