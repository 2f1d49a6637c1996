import { once } from 'node:events'
import { request } from 'node:http'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createApp } from '../../../functions/api/app.ts'
import { createApiServer } from '../../../infra/local/api-server.ts'
import { listenOnLoopback, stopServer } from '../../../infra/local/loopback.ts'
import { newSecret } from '../../../lib/ids.ts'
import { temporaryFolder } from '../../repositories.ts'
import { append, errors, newStored, team } from '../../support/api-server.ts'
import { type Pieces, startPieces } from '../../support/pieces.ts'

/** The API on a server that waits a shorter time for what is to arrive. */
const arrivalMs = { headers: 300, whole: 600 }
const faults: string[] = []
const token = newSecret()
let pieces: Pieces
let server: ReturnType<typeof createApiServer>
let url: string
beforeAll(async () => {
  pieces = await startPieces(temporaryFolder())
  await pieces.platform.tokens.add(token, { kind: 'person', team, principal: 'ada', role: 'admin' }, null)
  const app = createApp(pieces.platform, { version: 'test', log: ({ error }) => faults.push(error) })
  server = createApiServer(app.fetch, arrivalMs)
  url = await listenOnLoopback(server)
})
afterAll(async () => {
  await stopServer(server)
  await pieces.close()
})

const head = (line: string, ...headers: string[]) =>
  [
    `${line} HTTP/1.1`,
    `Host: ${new URL(url).host}`,
    `Authorization: Bearer ${token}`,
    ...headers,
    '',
    '',
  ].join('\r\n')

/** What a connection without a client library is sent until it is closed. */
const raw = (text: string, more?: (write: (text: string) => void) => void) =>
  new Promise<string>((resolve) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    let received = ''
    socket.setEncoding('utf8').on('data', (chunk) => {
      received += chunk
    })
    socket.on('error', () => {}).on('close', () => resolve(received))
    socket.write(text)
    more?.((later) => socket.write(later))
  })

const problemIn = (answer: string) => {
  const [, headers = '', body = ''] = /^(.*?)\r\n\r\n(.*)$/s.exec(answer) ?? []
  const id = /^x-request-id: (\S+)/im.exec(headers)?.[1]
  expect(headers).toMatch(/^content-type: application\/problem\+json/im)
  const problem = JSON.parse(body)
  expect(problem.request_id).toBe(id)
  return { status: Number(answer.split(' ')[1]), code: problem.code }
}

describe('what Node’s HTTP layer refuses is a problem with a request id', () => {
  it.each([
    ['no HTTP', 'hello\r\n\r\n', { status: 400, code: 'malformed_request' }],
    ['a call without a host', 'GET / HTTP/1.1\r\n\r\n', { status: 403, code: 'foreign_caller' }],
    [
      'headers that are too large',
      `GET / HTTP/1.1\r\nx: ${'y'.repeat(40_000)}\r\n\r\n`,
      { status: 431, code: 'headers_too_large' },
    ],
  ])('%s', async (_, text, expected) => {
    expect(problemIn(await raw(text))).toEqual(expected)
  })

  it('a target that is no address', async () => {
    expect(problemIn(await raw(head('GET /\\..', 'Connection: close')))).toEqual({
      ...{ status: 400, code: 'malformed_request' },
    })
  })
})

describe('a request that does not arrive', () => {
  it('whole is refused after a while', async () => {
    const slow = { status: 408, code: 'request_timeout' }
    expect(problemIn(await raw('GET / HTTP/1.1\r\nHo'))).toEqual(slow)
    const body = head('POST /v1/sessions', 'Content-Type: application/json', 'Content-Length: 100')
    expect(problemIn(await raw(`${body}{"re`))).toEqual(slow)
  })

  it('is refused also when it drips', async () => {
    const body = head('POST /v1/sessions', 'Content-Type: application/json', 'Content-Length: 1000')
    const drip = { stop: false }
    const answer = await raw(body, (write) => {
      const timer = setInterval(() => (drip.stop ? clearInterval(timer) : write('{')), 50)
    })
    drip.stop = true
    expect(problemIn(answer)).toEqual({ status: 408, code: 'request_timeout' })
  })

  it('does not cut off those who wait for their answer', async () => {
    const id = await newStored(pieces.platform)
    const answer = await fetch(`${url}/v1/sessions/${id}/events`, {
      headers: { authorization: `Bearer ${token}`, accept: 'text/event-stream' },
    })
    expect(answer.headers.get('x-accel-buffering')).toBe('no')
    const reader = (answer.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream()).getReader()
    const dead = raw('GET / HTTP/1.1\r\nHo')
    await Promise.all([dead, raw(head('POST /v1/sessions', 'Content-Length: 100'))])
    await append(pieces.platform, id, errors(1, 'after both deadlines'))
    let text = ''
    while (!text.includes('after both deadlines')) {
      const { done, value } = await reader.read()
      if (done) break
      text += value
    }
    expect(text).toContain('after both deadlines')
    await reader.cancel()
  })
})

it('a client that breaks off in the middle of its body is no fault of ours', async () => {
  const { hostname, port } = new URL(url)
  for (const length of [{ 'content-length': 100 }, { 'transfer-encoding': 'chunked' }]) {
    const headers = { ...length, authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const sent = request({ hostname, port, method: 'POST', path: '/v1/sessions', headers })
    sent.on('error', () => {})
    const arrived = once(server, 'request')
    sent.write('{"half')
    const [, response] = await arrived
    await new Promise((resolve) => setImmediate(resolve))
    sent.destroy()
    await once(response, 'close')
  }
  await fetch(`${url}/healthz`)
  expect(faults).toEqual([])
})

it('a call behind which a clock was off may be sent again, and then succeeds', async () => {
  const list = () => fetch(`${url}/v1/sessions`, { headers: { authorization: `Bearer ${token}` } })
  // What the SDK believes after the machine's clock was set right.
  pieces.clients.dynamo.config.systemClockOffset = 20 * 60_000
  const answer = await list()
  expect(answer.status).toBe(503)
  expect(await answer.json()).toMatchObject({ code: 'unavailable' })
  expect((await list()).status).toBe(200)
  expect(faults.splice(0)).toEqual([expect.stringContaining('Signature not yet current')])
})

it.each([
  ['a lone continuation byte', [0x80]],
  ['a cut character', [0xe2, 0x82]],
  ['half of a pair as UTF-8', [0xed, 0xa0, 0x80]],
])('a body with %s is refused, and not taken with another character', async (_, bytes) => {
  const body = Buffer.concat([Buffer.from('{"intent":"'), Buffer.from(bytes), Buffer.from('"}')])
  const answer = await fetch(`${url}/v1/sessions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body,
  })
  expect(answer.status).toBe(400)
  expect(await answer.json()).toMatchObject({
    code: 'invalid_json',
    detail: expect.stringContaining('UTF-8'),
  })
})

it.each(['/healthz', '/v1/sessions', '/nothing', '/docs', '/openapi.json'])(
  '%s says to browsers what they may do with it',
  async (path) => {
    const { headers } = await fetch(`${url}${path}`)
    expect(Object.fromEntries(headers)).toMatchObject({
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
      'cross-origin-resource-policy': 'same-origin',
      'content-security-policy': expect.stringContaining("default-src 'none'"),
    })
  },
)
