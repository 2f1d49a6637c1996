import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { CreateTableCommand, DynamoDBClient, GetItemCommand, PutItemCommand } from '@aws-sdk/client-dynamodb'
import { GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { toGatehouseError } from '../../../functions/api/problem.ts'
import { startDynamoDb } from '../../../infra/local/dynamodb.ts'
import { startS3 } from '../../../infra/local/s3.ts'
import { AppendFile } from '../../../infra/local/states/append-file.ts'
import { testKeys } from '../../support/keys.ts'
import { mountSmallDisk } from './small-disk.ts'

const probe = mountSmallDisk(1)
probe?.unmount()
const settings = {
  region: 'us-east-1',
  credentials: testKeys,
  maxAttempts: 1,
}
const outOfRoom = { $metadata: expect.objectContaining({ httpStatusCode: 503 }) }

// Only root may mount a small file system.
describe.skipIf(!probe)('on a disk that is full', () => {
  let disk: NonNullable<ReturnType<typeof mountSmallDisk>>
  beforeEach(() => {
    const mounted = mountSmallDisk(32)
    if (!mounted) throw new Error('the file system could not be mounted')
    disk = mounted
  })
  afterEach(() => disk.unmount())

  const clientOf = (endpoint: string) => new DynamoDBClient({ ...settings, endpoint })
  const put = (client: DynamoDBClient, pk: string, text = '') =>
    client.send(new PutItemCommand({ TableName: 'table', Item: { pk: { S: pk }, text: { S: text } } }))
  const has = async (client: DynamoDBClient, pk: string) =>
    (await client.send(new GetItemCommand({ TableName: 'table', Key: { pk: { S: pk } } }))).Item !== undefined
  const createTable = (client: DynamoDBClient) =>
    client.send(
      new CreateTableCommand({
        TableName: 'table',
        BillingMode: 'PAY_PER_REQUEST',
        AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' }],
        KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }],
      }),
    )
  const putUntilFull = async (client: DynamoDBClient) => {
    for (let at = 0; at < 100; at++) await put(client, `filling-${at}`, 'x'.repeat(100_000))
  }

  test('the database answers 503 to a write, reads on, and is taken up again when there is room', async () => {
    const path = join(disk.folder, 'dynamodb')
    const database = await startDynamoDb({ keys: testKeys, path })
    const client = clientOf(database.endpoint)
    await createTable(client)
    await expect
      .poll(() =>
        put(client, 'before').then(
          () => true,
          () => false,
        ),
      )
      .toBe(true)
    disk.fill()
    await expect(putUntilFull(client)).rejects.toMatchObject({
      ...outOfRoom,
      message: expect.stringContaining('no room on the disk'),
    })
    const refused = await put(client, 'still full').catch((error: unknown) => error)
    expect(refused).toMatchObject(outOfRoom)
    expect(toGatehouseError(refused)).toMatchObject({ code: 'unavailable', status: 503 })
    expect(await has(client, 'before')).toBe(true)
    disk.empty()
    await Promise.all([put(client, 'after'), put(client, 'after too'), has(client, 'before')])
    await database.close()

    const again = await startDynamoDb({ keys: testKeys, path })
    const found = await Promise.all(
      ['before', 'after', 'after too'].map((pk) => has(clientOf(again.endpoint), pk)),
    )
    expect(found).toEqual([true, true, true])
    await again.close()
  })

  test('a start says that there is no room, and not that another process holds the folder', async () => {
    disk.fill()
    const error = await startDynamoDb({ keys: testKeys, path: join(disk.folder, 'dynamodb') }).then(
      async (started) => started.close(),
      (fault: unknown) => fault,
    )
    expect(String(error)).toMatch(/no room|ENOSPC/i)
    expect(String(error)).not.toContain('held by another process')
  })

  test('a put of an object is answered 503, leaves nothing, and works when there is room', async () => {
    const s3 = await startS3({ keys: testKeys, directory: join(disk.folder, 's3'), bucket: 'b' })
    const client = new S3Client({ ...settings, endpoint: s3.endpoint, forcePathStyle: true })
    const write = (Key: string) =>
      client.send(new PutObjectCommand({ Bucket: 'b', Key, Body: Buffer.alloc(100_000) }))
    await write('before')
    disk.fill()
    await expect(write('full')).rejects.toMatchObject(outOfRoom)
    const kept = await client.send(new GetObjectCommand({ Bucket: 'b', Key: 'before' }))
    expect((await kept.Body?.transformToByteArray())?.length).toBe(100_000)
    await expect(client.send(new GetObjectCommand({ Bucket: 'b', Key: 'full' }))).rejects.toMatchObject({
      name: 'NoSuchKey',
    })
    disk.empty()
    await write('full')
    await s3.close()
  })

  test('a line that had half its room is written whole later', async () => {
    const file = new AppendFile(join(disk.folder, 'lines'))
    file.append('first')
    await file.flushed()
    disk.fill()
    const long = 'x'.repeat(1_000_000)
    file.append(long)
    await expect(file.flushed()).rejects.toMatchObject({ code: 'ENOSPC' })
    disk.empty()
    await file.flushed()
    expect(readFileSync(file.path, 'utf8')).toBe(`first\n${long}\n`)
  })
})
