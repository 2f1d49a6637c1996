import { execFile } from 'node:child_process'
import { chmodSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { DynamoDBClient, ListTablesCommand } from '@aws-sdk/client-dynamodb'
import { GetObjectCommand, HeadObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3'
import { ListStateMachinesCommand, SFNClient } from '@aws-sdk/client-sfn'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startTools, type Tools } from '../../../functions/worker/tools.ts'
import { ensureKeyPair, type KeyPair } from '../../../infra/local/doors/key-pair.ts'
import { type Stack, startStack } from '../../../infra/local/stack.ts'
import { temporaryFolder } from '../../repositories.ts'

const nobody = 65534
const isRoot = process.getuid?.() === 0
const home = join(temporaryFolder(), 'home')
const faults: string[] = []
let stack: Stack
let tools: Tools
let keys: KeyPair
beforeAll(async () => {
  // A home as an older start left it.
  mkdirSync(home, { mode: 0o755 })
  writeFileSync(join(home, 'endpoints.json'), '{}', { mode: 0o644 })
  chmodSync(dirname(home), 0o755)
  stack = await startStack({ port: 0, home, concurrency: 1, log: (line) => faults.push(line) })
  keys = await ensureKeyPair(join(home, 'access-key.json'))
  tools = await startTools({
    ask: async () => ({ kind: 'refused', reason: 'nobody' }),
    guidance: async () => [],
    journal: {
      appendAs: async () => ({ sequence: 0, records: [], receipt: null }),
      state: () => Promise.reject(new Error('there is no journal')),
      settled: async () => {},
    },
    now: Date.now,
  })
}, 60_000)
afterAll(async () => {
  await tools.close()
  await stack.close()
})

/** Every server on loopback that a stack and its workers start. */
const servers = () => ({
  api: stack.url,
  dynamodb: stack.endpoints.dynamodb ?? '',
  s3: stack.endpoints.s3 ?? '',
  states: stack.endpoints.states ?? '',
  tools: tools.url,
})
type Server = keyof ReturnType<typeof servers>
const all: Server[] = ['api', 'dynamodb', 's3', 'states', 'tools']

/** A call with headers of our own, which `fetch` would not send. */
const call = (server: Server, headers: Record<string, string>, { method = 'GET', path = '/' } = {}) => {
  const { hostname, port } = new URL(servers()[server])
  return new Promise<{ status: number; headers: NodeJS.Dict<string | string[]>; text: string }>(
    (resolve, reject) => {
      const sent = request({ hostname, port, method, path, headers }, (answer) => {
        let text = ''
        answer.setEncoding('utf8').on('data', (chunk) => {
          text += chunk
        })
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text }))
      })
      sent.on('error', reject).end()
    },
  )
}

describe('the files of a home', () => {
  it('are its owner’s alone, also those that an older start left', () => {
    expect(statSync(home).mode & 0o777).toBe(0o700)
    const rights = Object.fromEntries(
      readdirSync(home, { withFileTypes: true }).map((entry) => [
        entry.name,
        [entry.isDirectory(), statSync(join(home, entry.name)).mode & 0o777],
      ]),
    )
    expect(Object.keys(rights)).toEqual(
      expect.arrayContaining([
        'access-key.json',
        'admin-token',
        'aws-config',
        'endpoints.json',
        'dynamodb',
        's3',
      ]),
    )
    for (const [name, right] of Object.entries(rights))
      expect(
        [
          [true, 0o700],
          [false, 0o600],
        ],
        `${name} ${right}`,
      ).toContainEqual(right)
  })

  it('keep their key from start to start, and no two homes have the same', async () => {
    expect(await ensureKeyPair(join(home, 'access-key.json'))).toEqual(keys)
    const other = await ensureKeyPair(join(temporaryFolder(), 'access-key.json'))
    expect(other.accessKeyId).not.toBe(keys.accessKeyId)
    expect(other.secretAccessKey).not.toBe(keys.secretAccessKey)
    const damaged = join(temporaryFolder(), 'access-key.json')
    writeFileSync(damaged, '{"accessKeyId": ""}')
    await expect(ensureKeyPair(damaged)).rejects.toThrow(/holds no key pair; remove it/)
  })

  it.runIf(isRoot)('and the services let another user of the machine have nothing', async () => {
    const { dynamodb, states, s3 } = servers()
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [join(import.meta.dirname, 'stranger.ts')],
      {
        env: {
          ...{ PATH: process.env.PATH, NODE_NO_WARNINGS: '1', BECOME: String(nobody), HOME_FOLDER: home },
          ENDPOINTS: JSON.stringify([dynamodb, states, `${s3}/gatehouse?delete`]),
          FILES: JSON.stringify(readdirSync(home)),
        },
      },
    )
    expect(JSON.parse(stdout)).toEqual({ uid: nobody, listed: false, read: [], asked: [400, 400, 403] })
  })
})

describe('a page of another origin', () => {
  it.each(all)('gets nothing from %s, and no leave to ask', async (server) => {
    const { host } = new URL(servers()[server])
    for (const origin of ['https://example.com', 'null', `https://${host}`, 'http://127.0.0.1:1'])
      for (const method of ['OPTIONS', 'GET', 'POST']) {
        const answer = await call(
          server,
          { host, origin, 'access-control-request-method': 'POST', 'access-control-request-headers': '*' },
          { method },
        )
        expect([400, 403], `${method} ${origin} ${answer.text}`).toContain(answer.status)
        expect(answer.headers).not.toHaveProperty('access-control-allow-origin')
        expect(answer.text).toMatch(/another origin/)
      }
  })

  it.each(all)('does not reach %s by a name of its own either', async (server) => {
    const { host, port } = new URL(servers()[server])
    for (const name of [
      'evil.example.com',
      `evil.example.com:${port}`,
      `127.0.0.1.evil.example.com:${port}`,
      '127.0.0.1:1',
    ]) {
      const answer = await call(server, { host: name })
      expect([400, 403], `${name} ${answer.text}`).toContain(answer.status)
      expect(answer.text).toContain(`answers to ${host} alone`)
    }
  })

  it('is not our own page, which the API answers', async () => {
    const { host, port } = new URL(stack.url)
    for (const own of [host, `localhost:${port}`]) {
      const answer = await call('api', { host: own, origin: `http://${own}` }, { path: '/healthz' })
      expect(answer.status).toBe(200)
    }
    const crossed = await call('api', { host, origin: `http://localhost:${port}` }, { path: '/healthz' })
    expect(crossed.status).toBe(403)
    expect(crossed.headers['content-type']).toBe('application/problem+json')
    expect(JSON.parse(crossed.text)).toMatchObject({
      code: 'foreign_caller',
      request_id: crossed.headers['x-request-id'],
    })
  })
})

describe('the key of a home', () => {
  const common = { region: 'us-east-1', maxAttempts: 1, forcePathStyle: true }
  const probes = (credentials: KeyPair, more: { systemClockOffset?: number } = {}) => {
    const { dynamodb, s3, states } = servers()
    const dynamo = new DynamoDBClient({ ...common, ...more, credentials, endpoint: dynamodb })
    const bucket = new S3Client({ ...common, ...more, credentials, endpoint: s3 })
    const sfn = new SFNClient({ ...common, ...more, credentials, endpoint: states })
    const name = (answer: Promise<unknown>) =>
      answer.then(
        () => 'answered',
        (error: unknown) => Object(error).name,
      )
    return Promise.all([
      name(dynamo.send(new ListTablesCommand({}))),
      name(bucket.send(new PutObjectCommand({ Bucket: 'gatehouse', Key: 'probe', Body: 'x' }))),
      name(sfn.send(new ListStateMachinesCommand({}))),
    ])
  }
  const minutes = (count: number) => count * 60_000

  it('opens all three services, on a clock that is a little off', async () => {
    for (const systemClockOffset of [0, minutes(14), minutes(-14)])
      expect(await probes(keys, { systemClockOffset })).toEqual(['answered', 'answered', 'answered'])
  })

  it.each<[string, (own: KeyPair) => KeyPair, number, string[]]>([
    [
      'another key',
      () => ({ accessKeyId: 'local', secretAccessKey: 'local' }),
      0,
      ['UnrecognizedClientException', 'InvalidAccessKeyId', 'UnrecognizedClientException'],
    ],
    [
      'its name with another secret',
      ({ accessKeyId }) => ({ accessKeyId, secretAccessKey: 'guessed' }),
      0,
      ['InvalidSignatureException', 'SignatureDoesNotMatch', 'InvalidSignatureException'],
    ],
    [
      'a request of twenty minutes ago',
      (own) => own,
      minutes(-20),
      ['InvalidSignatureException', 'RequestTimeTooSkewed', 'InvalidSignatureException'],
    ],
    [
      'a request of the future',
      (own) => own,
      minutes(20),
      ['InvalidSignatureException', 'RequestTimeTooSkewed', 'InvalidSignatureException'],
    ],
  ])('is not replaced by %s', async (_, credentials, systemClockOffset, expected) => {
    expect(await probes(credentials(keys), { systemClockOffset })).toEqual(expected)
  })

  it.each(['dynamodb', 's3', 'states'] as const)('is asked for by %s at every door', async (server) => {
    const { host } = new URL(servers()[server])
    for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'HEAD', 'OPTIONS'])
      for (const path of ['/', '/gatehouse/probe', '/gatehouse?X-Amz-Algorithm=AWS4-HMAC-SHA256'])
        expect([400, 403]).toContain((await call(server, { host }, { method, path })).status)
  })

  it('signs the body too', async () => {
    const { dynamodb } = servers()
    const client = new DynamoDBClient({ ...common, credentials: keys, endpoint: dynamodb })
    client.middlewareStack.add(
      (next) => (args) => {
        Object.assign(Object(args.request), { body: '{"Limit":1}' })
        Object.assign(Object(args.request).headers, { 'content-length': '11' })
        return next(args)
      },
      { step: 'finalizeRequest', priority: 'low', name: 'forge' },
    )
    await expect(client.send(new ListTablesCommand({}))).rejects.toMatchObject({
      name: 'InvalidSignatureException',
    })
  })
})

describe('a presigned address', () => {
  const Bucket = 'gatehouse'
  let s3: S3Client
  beforeAll(() => {
    s3 = new S3Client({
      ...{ region: 'us-east-1', endpoint: servers().s3, forcePathStyle: true, credentials: keys },
      requestChecksumCalculation: 'WHEN_REQUIRED',
    })
  })
  afterAll(() => s3.destroy())
  const isThere = (Key: string) =>
    s3.send(new HeadObjectCommand({ Bucket, Key })).then(
      () => true,
      () => false,
    )
  const send = async (url: string, more: RequestInit = {}) => {
    const answer = await fetch(url, { method: 'PUT', body: 'content', ...more })
    return { status: answer.status, code: /<Code>(\w+)/.exec(await answer.text())?.[1] }
  }

  it('that a worker is given is good for its one key, its one method and its time', async () => {
    const key = 'teams/local/sessions/ses_a/artifacts/log.txt'
    const url = await stack.platform.blobs.uploadUrl(key)
    const other = url.replace('ses_a', 'ses_b')
    expect(await send(other)).toEqual({ status: 403, code: 'SignatureDoesNotMatch' })
    expect(await isThere('teams/local/sessions/ses_b/artifacts/log.txt')).toBe(false)
    for (const method of ['GET', 'DELETE', 'POST'])
      expect(await send(url, method === 'GET' ? { method, body: null } : { method })).toMatchObject({
        status: 403,
      })
    expect(await send(url.replace(/X-Amz-Expires=\d+/, 'X-Amz-Expires=604800'))).toMatchObject({
      status: 403,
    })
    expect(await send(`${url}&acl`)).toMatchObject({ status: 403 })
    expect(await send(url.split('?')[0] ?? '')).toEqual({ status: 403, code: 'AccessDenied' })
    expect(await isThere(key)).toBe(false)
    expect(await send(url)).toMatchObject({ status: 200 })
    const read = await stack.platform.blobs.downloadUrl(key)
    expect(await send(read)).toMatchObject({ status: 403 })
    expect(await (await fetch(read)).text()).toBe('content')
  })

  it('takes no order that was not signed, such as to copy another object', async () => {
    await send(await stack.platform.blobs.uploadUrl('secret'), { body: 'secret' })
    const url = await stack.platform.blobs.uploadUrl('taken')
    const headers = { 'x-amz-copy-source': '/gatehouse/secret' }
    expect(await send(url, { headers, body: null })).toEqual({ status: 403, code: 'AccessDenied' })
    expect(await isThere('taken')).toBe(false)
  })

  it('ends', async () => {
    const put = new PutObjectCommand({ Bucket, Key: 'late' })
    const signed = (ago: number, expiresIn: number) =>
      getSignedUrl(s3, put, { expiresIn, signingDate: new Date(Date.now() - ago * 1000) })
    expect(await send(await signed(120, 60))).toEqual({ status: 403, code: 'AccessDenied' })
    expect(await send(await signed(-3600, 60))).toEqual({ status: 403, code: 'AccessDenied' })
    expect(await isThere('late')).toBe(false)
    expect(await send(await signed(30, 60))).toMatchObject({ status: 200 })
  })

  it('takes the length and the checksum that were signed, and no other', async () => {
    const Key = 'measured'
    const long = await getSignedUrl(s3, new PutObjectCommand({ Bucket, Key, ContentLength: 7 }), {
      signableHeaders: new Set(['host', 'content-length']),
    })
    expect(await send(long, { body: 'content and more' })).toEqual({
      status: 403,
      code: 'SignatureDoesNotMatch',
    })
    const ChecksumSHA256 = '7XACtDnprIRfIjV9giusFERzD722AW0+yUMil7nsn3M='
    const summed = await getSignedUrl(s3, new PutObjectCommand({ Bucket, Key, ChecksumSHA256 }))
    expect(await send(summed, { body: 'tampered' })).toEqual({ status: 400, code: 'BadDigest' })
    expect(await isThere(Key)).toBe(false)
    expect(await send(summed)).toMatchObject({ status: 200 })
    expect(await send(long)).toMatchObject({ status: 200 })
  })

  it('and a signed put store only the body that was signed', async () => {
    const client = new S3Client({
      ...{
        region: 'us-east-1',
        endpoint: servers().s3,
        forcePathStyle: true,
        credentials: keys,
        maxAttempts: 1,
      },
    })
    client.middlewareStack.add(
      (next) => (args) => {
        Object.assign(Object(args.request), { body: 'forged!' })
        return next(args)
      },
      { step: 'finalizeRequest', priority: 'low', name: 'forge' },
    )
    await expect(
      client.send(new PutObjectCommand({ Bucket, Key: 'forged', Body: 'content' })),
    ).rejects.toMatchObject({ name: 'BadDigest' })
    expect(await isThere('forged')).toBe(false)
    const streamed = new GetObjectCommand({ Bucket, Key: 'measured' })
    expect(await (await s3.send(streamed)).Body?.transformToString()).toBe('content')
    client.destroy()
  })
})

it('met no fault of ours on the way', () => {
  expect(faults).toEqual([])
})
