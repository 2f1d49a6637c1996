import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  CopyObjectCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  NoSuchKey,
  PutObjectCommand,
  S3Client,
  S3ServiceException,
} from '@aws-sdk/client-s3'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startS3 } from '../../../infra/local/s3.ts'
import { testKeys } from '../../support/keys.ts'

const Bucket = 'gatehouse'
let directory: string
let s3: Awaited<ReturnType<typeof startS3>>
let client: S3Client

const clientOf = (endpoint: string) =>
  new S3Client({
    endpoint,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: testKeys,
    maxAttempts: 1,
    // An address that is signed with the checksum of a body is good for that body alone, and here there is none yet.
    requestChecksumCalculation: 'WHEN_REQUIRED',
  })

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gatehouse-s3-'))
  s3 = await startS3({ directory, bucket: Bucket, keys: testKeys })
  client = clientOf(s3.endpoint)
})
afterAll(async () => {
  client.destroy()
  await s3.close()
  await rm(directory, { recursive: true, force: true })
})

const put = (Key: string, Body: string | Buffer, more = {}) =>
  client.send(new PutObjectCommand({ Bucket, Key, Body, ...more }))
const read = async (Key: string) =>
  (await client.send(new GetObjectCommand({ Bucket, Key }))).Body?.transformToString()

describe('S3 on one machine', () => {
  test('listens on the loopback address only', () => {
    expect(new URL(s3.endpoint).hostname).toBe('127.0.0.1')
  })

  test('one of many racing writers under If-None-Match wins, and its object is what is read', async () => {
    const Key = 'teams/t/sessions/s/journal/000000000001.jsonl'
    const attempts = await Promise.allSettled(
      Array.from({ length: 20 }, (_, index) => put(Key, `writer ${index}`, { IfNoneMatch: '*' })),
    )
    const winners = attempts.flatMap((attempt, index) => (attempt.status === 'fulfilled' ? [index] : []))
    expect(winners).toHaveLength(1)
    for (const attempt of attempts) {
      if (attempt.status === 'fulfilled') continue
      expect(attempt.reason).toBeInstanceOf(S3ServiceException)
      expect(attempt.reason).toMatchObject({
        name: 'PreconditionFailed',
        $metadata: { httpStatusCode: 412 },
        message: 'At least one of the pre-conditions you specified did not hold',
      })
    }
    expect(await read(Key)).toBe(`writer ${winners[0]}`)
  })

  test('a large body that loses the condition is refused, not cut off', async () => {
    const Body = Buffer.alloc(8 << 20, 1)
    await put('large', 'first')
    await expect(put('large', Body, { IfNoneMatch: '*' })).rejects.toMatchObject({
      name: 'PreconditionFailed',
    })
    expect(await read('large')).toBe('first')
  })

  test('If-Match replaces only what was seen', async () => {
    const { ETag } = await put('matched', 'one')
    await put('matched', 'two', { IfMatch: ETag })
    await expect(put('matched', 'three', { IfMatch: ETag })).rejects.toMatchObject({
      name: 'PreconditionFailed',
    })
    await expect(put('never', 'three', { IfMatch: ETag })).rejects.toMatchObject({ name: 'NoSuchKey' })
    expect(await read('matched')).toBe('two')
  })

  test('presigned URLs put and get, with their content type and without credentials', async () => {
    const Key = 'teams/t/sessions/s/artifacts/check output.txt'
    const upload = await getSignedUrl(
      client,
      new PutObjectCommand({ Bucket, Key, ContentType: 'text/plain' }),
    )
    const stored = await fetch(upload, {
      method: 'PUT',
      body: 'ok 1 - it works',
      headers: { 'content-type': 'text/plain' },
    })
    expect(stored.status).toBe(200)
    const fetched = await fetch(await getSignedUrl(client, new GetObjectCommand({ Bucket, Key })))
    expect(fetched.headers.get('content-type')).toBe('text/plain')
    expect(await fetched.text()).toBe('ok 1 - it works')
  })

  test('a presigned put may carry a condition', async () => {
    const command = new PutObjectCommand({ Bucket, Key: 'signed-once', IfNoneMatch: '*' })
    const url = await getSignedUrl(client, command, { unhoistableHeaders: new Set(['if-none-match']) })
    const send = () => fetch(url, { method: 'PUT', body: 'x', headers: { 'if-none-match': '*' } })
    expect((await send()).status).toBe(200)
    expect((await send()).status).toBe(412)
  })

  test('a missing key reads as NoSuchKey', async () => {
    await expect(read('nowhere')).rejects.toBeInstanceOf(NoSuchKey)
  })

  test('a stream of unknown checksum is stored without its framing', async () => {
    const parts = Array.from({ length: 50 }, (_, index) => Buffer.alloc(3_001, index))
    const Body = Readable.from(parts)
    const length = parts.length * 3_001
    await client.send(new PutObjectCommand({ Bucket, Key: 'streamed', Body, ContentLength: length }))
    const found = await client.send(new GetObjectCommand({ Bucket, Key: 'streamed' }))
    const bytes = await found.Body?.transformToByteArray()
    expect(Buffer.concat(parts).equals(bytes ?? Buffer.alloc(0))).toBe(true)
    expect(found.ContentEncoding).toBeUndefined()
  })

  test('a listing that does not fit one page goes on behind its token, and folders are common prefixes', async () => {
    const keys = Array.from({ length: 7 }, (_, index) => `pages/${index % 2}/key-${index}`)
    for (const key of keys) await put(key, key)
    const seen: (string | undefined)[] = []
    let ContinuationToken: string | undefined
    do {
      const page = await client.send(
        new ListObjectsV2Command({
          Bucket,
          Prefix: 'pages/',
          MaxKeys: 3,
          ...(ContinuationToken ? { ContinuationToken } : {}),
        }),
      )
      seen.push(...(page.Contents ?? []).map(({ Key }) => Key))
      ContinuationToken = page.NextContinuationToken
    } while (ContinuationToken)
    expect(seen).toEqual(keys.toSorted())
    const folders = await client.send(new ListObjectsV2Command({ Bucket, Prefix: 'pages/', Delimiter: '/' }))
    expect(folders.CommonPrefixes?.map(({ Prefix }) => Prefix)).toEqual(['pages/0/', 'pages/1/'])
    expect(folders.Contents ?? []).toEqual([])
  })

  test('metadata, listing, copying and deleting work', async () => {
    await put('dir/a', 'A', { Metadata: { hash: 'abc' }, ContentType: 'application/json' })
    await put('dir/b', 'B')
    await put('dir/a', 'AA', { Metadata: { hash: 'def' } })
    const head = await client.send(new HeadObjectCommand({ Bucket, Key: 'dir/a' }))
    expect(head.Metadata).toEqual({ hash: 'def' })
    expect(head.ContentLength).toBe(2)
    const listed = await client.send(new ListObjectsV2Command({ Bucket, Prefix: 'dir/' }))
    expect(listed.Contents?.map((entry) => entry.Key)).toEqual(['dir/a', 'dir/b'])
    await client.send(new CopyObjectCommand({ Bucket, Key: 'dir/c', CopySource: `${Bucket}/dir/a` }))
    expect(await read('dir/c')).toBe('AA')
    await client.send(new DeleteObjectCommand({ Bucket, Key: 'dir/c' }))
    await expect(read('dir/c')).rejects.toBeInstanceOf(NoSuchKey)
  })

  test('an upload that breaks off leaves nothing behind', async () => {
    const controller = new AbortController()
    const url = await getSignedUrl(client, new PutObjectCommand({ Bucket, Key: 'broken/off' }))
    const body = new ReadableStream({
      start: (stream) => stream.enqueue(new Uint8Array(100_000)),
    })
    const sent = fetch(url, { method: 'PUT', body, signal: controller.signal, duplex: 'half' })
    await sleep(100)
    controller.abort()
    await expect(sent).rejects.toThrow()
    await expect.poll(() => readdir(join(directory, 'incoming'))).toEqual([])
    await expect(read('broken/off')).rejects.toBeInstanceOf(NoSuchKey)
  })

  test('a process killed while it writes leaves whole objects only', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'gatehouse-s3-killed-'))
    const child = spawn(
      process.execPath,
      [
        '--input-type=module',
        '--eval',
        `const { startS3 } = await import(${JSON.stringify(new URL('../../../infra/local/s3.ts', import.meta.url).href)})
         const s3 = await startS3({ directory: ${JSON.stringify(folder)}, bucket: '${Bucket}', keys: ${JSON.stringify(testKeys)} })
         console.log(s3.endpoint)`,
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    )
    const [line] = await once(child.stdout, 'data')
    const doomed = clientOf(String(line).trim())
    const bodyOf = (name: string) => Buffer.alloc(700_000, name)
    const names = Array.from({ length: 60 }, (_, index) => `many/object-${index}`)
    const acknowledged = new Set<string>()
    const writes = names.map(async (Key) => {
      await doomed.send(
        new PutObjectCommand({
          Bucket,
          Key,
          Body: bodyOf(Key),
          ContentType: 'text/x-known',
          Metadata: { Key },
        }),
      )
      acknowledged.add(Key)
      if (acknowledged.size === 8) child.kill('SIGKILL')
    })
    await Promise.allSettled(writes)
    child.kill('SIGKILL')
    doomed.destroy()

    const again = await startS3({ directory: folder, bucket: Bucket, keys: testKeys })
    const reader = clientOf(again.endpoint)
    const { Contents = [] } = await reader.send(new ListObjectsV2Command({ Bucket, Prefix: 'many/' }))
    const survivors = Contents.map((entry) => entry.Key ?? '')
    expect(survivors.length).toBeLessThan(names.length)
    expect(survivors).toEqual(expect.arrayContaining([...acknowledged]))
    for (const Key of survivors) {
      const found = await reader.send(new GetObjectCommand({ Bucket, Key }))
      expect(Buffer.from((await found.Body?.transformToByteArray()) ?? []).equals(bodyOf(Key))).toBe(true)
      expect(found).toMatchObject({ ContentType: 'text/x-known', Metadata: { key: Key } })
    }
    expect(await readdir(join(folder, 'incoming'))).toEqual([])
    reader.destroy()
    await again.close()
    await rm(folder, { recursive: true, force: true })
  }, 20_000)
})
