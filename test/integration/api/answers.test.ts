import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { newId } from '../../../lib/ids.ts'
import { type QuietStack, requireProblem, startQuietStack } from './quiet-stack.ts'

let stack: QuietStack
beforeAll(async () => {
  stack = await startQuietStack()
}, 60_000)
afterAll(() => stack.close())

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
    for (const path of [
      '',
      '/events',
      '/journal',
      '/journal/verify',
      '/snapshot',
      '/transcript',
      '/review',
      '/diff',
      '/history',
    ])
      requireProblem(await stack.call(`/v1/sessions/${id}${path}`), 'not_found')
    requireProblem(await stack.post(`/v1/sessions/${id}/cancel`, {}), 'not_found')
    requireProblem(
      await stack.post(`/v1/sessions/${id}/contract/confirm`, { contract_hash: 'x' }),
      'not_found',
    )
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
        ...[
          'GET /healthz',
          'GET /schemas/journal.json',
          'GET /v1/sessions',
          'POST /v1/sessions',
          'GET /v1/sessions/{id}',
        ],
        ...[
          'contract/confirm',
          'contract/revise',
          'review/approve',
          'review/reject',
          'review/changes',
          'gate',
          'steer',
          'answer',
          'resume',
          'continue',
          'cancel',
          'branches',
          'branches/{branch_id}/activate',
        ].map((path) => `POST /v1/sessions/{id}/${path}`),
        ...[
          'review',
          'diff',
          'events',
          'journal',
          'journal/verify',
          'history',
          'artifacts/{name}',
          'snapshot',
          'transcript',
          'branches',
        ].map((path) => `GET /v1/sessions/{id}/${path}`),
        ...['archive', 'records'].map((path) => `GET /v1/sessions/{id}/${path}`),
        ...['POST /v1/imports', 'POST /v1/imports/{import_id}'],
        ...['lease', 'heartbeat', 'entries', 'uploads', 'complete', 'question', 'retain'].map(
          (path) => `POST /worker/v1/${path}`,
        ),
        ...['command', 'question', 'guidance', 'journal'].map((path) => `GET /worker/v1/${path}`),
      ].toSorted(),
    )
    for (const [, name] of text.matchAll(/"#\/components\/schemas\/([^"]+)"/g))
      expect(spec.components.schemas).toHaveProperty([name ?? ''])
  })

  it('declares of each call who may make it and what it may answer', async () => {
    const { json } = await stack.call('/openapi.json', { token: null })
    const operation = z.object({
      security: z.array(z.object({ token: z.tuple([z.enum(['viewer', 'operator', 'approver', 'worker'])]) })),
      responses: z.record(z.string(), z.unknown()),
    })
    const calls = Object.entries(
      z.record(z.string(), z.record(z.string(), z.unknown())).parse(json.paths),
    ).flatMap(([path, of]) => Object.entries(of).map(([method, call]) => ({ path, method, call })))
    const guarded = calls.filter(({ path }) => /^\/(worker\/)?v1\//.test(path))
    expect(guarded.length).toBeGreaterThan(35)
    for (const { path, method, call } of guarded) {
      const { responses, security } = operation.parse(call)
      const body = method === 'post' ? ['400', '413', '415'] : []
      expect(Object.keys(responses), `${method} ${path}`).toEqual(
        expect.arrayContaining(['401', '403', '404', '409', '422', '500', '503', ...body]),
      )
      expect(security[0]?.token[0] === 'worker', path).toBe(path.startsWith('/worker'))
    }
  })

  it('serves its documentation as a page that loads nothing from outside', async () => {
    const answer = await stack.call('/docs', { token: null })
    expect(answer.headers.get('content-type')).toMatch(/^text\/html/)
    const loaded = [...answer.text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => path ?? '')
    const paths = loaded.filter((path) => !path.startsWith('data:'))
    expect(paths).toHaveLength(3)
    const texts = await Promise.all(
      paths.map(async (path) => {
        expect(path).not.toMatch(/^(\w+:|\/\/)/)
        const file = await stack.call(`/${path}`, { token: null })
        expect(file.status).toBe(200)
        expect(file.headers.get('content-type')).toMatch(/^text\/(css|javascript)/)
        return file.text
      }),
    )
    expect(texts.at(-1)).toContain('openapi.json')
    expect(answer.headers.get('content-security-policy')).toContain("script-src 'self'")
  })
})

it('met no fault of ours on the way', () => {
  expect(stack.faults).toEqual([])
})
