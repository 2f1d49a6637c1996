import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { newId } from '../../../lib/ids.ts'
import { limits } from '../../../lib/limits.ts'
import { type QuietStack, requireProblem, startQuietStack } from './quiet-stack.ts'

let stack: QuietStack
beforeAll(async () => {
  stack = await startQuietStack()
}, 60_000)
afterAll(() => stack.close())

describe('an Idempotency-Key', () => {
  const withKey = (key: string, more: Record<string, unknown> = {}) =>
    stack.post('/v1/sessions', stack.start(more), { headers: { 'idempotency-key': key } })

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
    requireProblem(
      await stack.post(`/v1/sessions/${json.id}/cancel`, {}, { headers }),
      'idempotency_mismatch',
    )
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
    const { id } = await stack.create()
    const headers = { 'idempotency-key': 'decided' }
    const first = await stack.post(`/v1/sessions/${id}/cancel`, { reason: 'enough' }, { headers })
    const second = await stack.post(`/v1/sessions/${id}/cancel`, { reason: 'enough' }, { headers })
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
    const other = await stack.post('/v1/sessions', stack.start(), { headers, token: stack.tokens.stranger })
    expect(other.status).toBe(201)
    expect(other.json.id).not.toBe(json.id)
    await stack.post(`/v1/sessions/${other.json.id}/cancel`, {}, { token: stack.tokens.stranger })
  })
})

describe('a session', () => {
  it('is answered with its place and its version, and reads the same afterwards', async () => {
    const answer = await stack.post(
      '/v1/sessions',
      stack.start({ labels: { constructor: 'x', 'ключ 🙂': '' } }),
    )
    expect(answer.status, answer.text).toBe(201)
    expect(answer.headers.get('location')).toBe(`/v1/sessions/${answer.json.id}`)
    expect(answer.headers.get('etag')).toBe(`"${answer.json.version}"`)
    const read = await stack.call(`/v1/sessions/${answer.json.id}`)
    const { updated_at: _, ...stable } = answer.json
    expect(read.json).toMatchObject({ ...stable, labels: { constructor: 'x', 'ключ 🙂': '' } })
  })

  it('is changed under If-Match only at the version named', async () => {
    const { id } = await stack.create()
    const cancel = (match: string) =>
      stack.post(`/v1/sessions/${id}/cancel`, {}, { headers: { 'if-match': match } })
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
    const { id } = await stack.create()
    const first = await stack.post(`/v1/sessions/${id}/cancel`, { reason: 'enough' })
    const second = await stack.post(`/v1/sessions/${id}/cancel`, {})
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
      const late = await stack.post(`/v1/sessions/${id}/${path}`, body)
      requireProblem(late, 'already_decided')
      expect(late.json.session).toMatchObject({ id, state: 'abandoned' })
    }
    const proof = await stack.call(`/v1/sessions/${id}/journal/verify`)
    expect(proof.json).toMatchObject({ ok: true })
  })

  it('proves its journal, and shows where one was changed behind its back', async () => {
    const { id } = await stack.create()
    await stack.post(`/v1/sessions/${id}/cancel`, {})
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
      made.push((await stack.create({ labels: { lot: 'paged', parity: n % 2 === 0 ? 'even' : 'odd=1' } })).id)
    await stack.post(`/v1/sessions/${made[3]}/cancel`, {})
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
