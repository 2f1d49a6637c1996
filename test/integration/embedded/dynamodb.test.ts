import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  ConditionalCheckFailedException,
  CreateTableCommand,
  DynamoDBClient,
  GetItemCommand,
  ListTablesCommand,
  PutItemCommand,
  QueryCommand,
  UpdateItemCommand,
  waitUntilTableExists,
} from '@aws-sdk/client-dynamodb'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startDynamoDb } from '../../../infra/local/dynamodb.ts'
import { testKeys } from '../../support/keys.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'gatehouse-dynamodb-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const clientOf = (endpoint: string) =>
  new DynamoDBClient({
    endpoint,
    region: 'us-east-1',
    credentials: testKeys,
    maxAttempts: 1,
  })

/** Makes the table and waits until it is there: one that is being made is not to be found yet. */
const createTable = async (client: DynamoDBClient) => {
  await client.send(
    new CreateTableCommand({
      TableName: 'gatehouse',
      BillingMode: 'PAY_PER_REQUEST',
      AttributeDefinitions: [
        { AttributeName: 'pk', AttributeType: 'S' },
        { AttributeName: 'sk', AttributeType: 'S' },
        { AttributeName: 'due_pk', AttributeType: 'S' },
        { AttributeName: 'due_at', AttributeType: 'S' },
      ],
      KeySchema: [
        { AttributeName: 'pk', KeyType: 'HASH' },
        { AttributeName: 'sk', KeyType: 'RANGE' },
      ],
      GlobalSecondaryIndexes: [
        {
          IndexName: 'due',
          KeySchema: [
            { AttributeName: 'due_pk', KeyType: 'HASH' },
            { AttributeName: 'due_at', KeyType: 'RANGE' },
          ],
          Projection: { ProjectionType: 'ALL' },
        },
      ],
    }),
  )
  await waitUntilTableExists(
    { client, maxWaitTime: 10, minDelay: 0.05, maxDelay: 1 },
    { TableName: 'gatehouse' },
  )
}

describe('DynamoDB on one machine', () => {
  test('listens on the loopback address only', async () => {
    const dynamodb = await startDynamoDb({ keys: testKeys })
    expect(new URL(dynamodb.endpoint).hostname).toBe('127.0.0.1')
    await dynamodb.close()
    await expect(fetch(dynamodb.endpoint)).rejects.toThrow()
    await dynamodb.close()
  })

  test('refuses a port that is taken', async () => {
    const first = await startDynamoDb({ keys: testKeys })
    await expect(
      startDynamoDb({ port: Number(new URL(first.endpoint).port), keys: testKeys }),
    ).rejects.toThrow('EADDRINUSE')
    await first.close()
  })

  test('refuses a folder that another stack holds, and leaves that one alone', async () => {
    const path = join(folder, 'held')
    const holder = await startDynamoDb({ path, keys: testKeys })
    await expect(startDynamoDb({ path, keys: testKeys })).rejects.toThrow('held by another process')
    const client = clientOf(holder.endpoint)
    await createTable(client)
    client.destroy()
    await holder.close()
    const next = await startDynamoDb({ path, keys: testKeys })
    await next.close()
  })

  test('a client that breaks off in the middle of a request harms nobody', async () => {
    const dynamodb = await startDynamoDb({ keys: testKeys })
    const socket = connect(Number(new URL(dynamodb.endpoint).port), '127.0.0.1')
    const { host } = new URL(dynamodb.endpoint)
    socket.write(`POST / HTTP/1.1\r\nhost: ${host}\r\nauthorization: x\r\ncontent-length: 100\r\n\r\n{"half"`)
    await sleep(50)
    socket.destroy()
    await sleep(50)
    const client = clientOf(dynamodb.endpoint)
    expect((await client.send(new ListTablesCommand({}))).TableNames).toEqual([])
    client.destroy()
    await dynamodb.close()
  })

  test('one of many racing conditional writes wins', async () => {
    const dynamodb = await startDynamoDb({ keys: testKeys })
    const client = clientOf(dynamodb.endpoint)
    await createTable(client)
    const key = { pk: { S: 'TEAM#t' }, sk: { S: 'SESSION#1' } }
    await client.send(new PutItemCommand({ TableName: 'gatehouse', Item: { ...key, version: { N: '0' } } }))
    const attempts = await Promise.allSettled(
      Array.from({ length: 30 }, () =>
        client.send(
          new UpdateItemCommand({
            TableName: 'gatehouse',
            Key: key,
            UpdateExpression: 'SET version = :next',
            ConditionExpression: 'version = :seen',
            ExpressionAttributeValues: { ':next': { N: '1' }, ':seen': { N: '0' } },
          }),
        ),
      ),
    )
    const losers = attempts.filter((attempt) => attempt.status === 'rejected')
    expect(losers).toHaveLength(29)
    for (const loser of losers) expect(loser.reason).toBeInstanceOf(ConditionalCheckFailedException)
    client.destroy()
    await dynamodb.close()
  })

  test('tables, items and sparse indexes survive a restart', async () => {
    const path = join(folder, 'not', 'yet', 'made')
    const first = await startDynamoDb({ path, keys: testKeys })
    const before = clientOf(first.endpoint)
    await createTable(before)
    const item = { pk: { S: 'TEAM#t' }, sk: { S: 'SESSION#1' }, due_pk: { S: 'due' }, due_at: { S: '2030' } }
    await before.send(new PutItemCommand({ TableName: 'gatehouse', Item: item }))
    await before.send(
      new PutItemCommand({ TableName: 'gatehouse', Item: { pk: item.pk, sk: { S: 'SESSION#2' } } }),
    )
    before.destroy()
    await first.close()

    const second = await startDynamoDb({ path, keys: testKeys })
    const after = clientOf(second.endpoint)
    const found = await after.send(
      new GetItemCommand({ TableName: 'gatehouse', Key: { pk: item.pk, sk: item.sk }, ConsistentRead: true }),
    )
    expect(found.Item).toEqual(item)
    const due = await after.send(
      new QueryCommand({
        TableName: 'gatehouse',
        IndexName: 'due',
        KeyConditionExpression: 'due_pk = :due AND due_at < :now',
        ExpressionAttributeValues: { ':due': { S: 'due' }, ':now': { S: '2031' } },
      }),
    )
    expect(due.Items).toEqual([item])
    after.destroy()
    await second.close()
  })

  test('a process killed while it writes leaves every item where its index finds it', async () => {
    const path = join(folder, 'killed')
    const child = spawn(
      process.execPath,
      [
        '--input-type=module',
        '--eval',
        `const { startDynamoDb } = await import(${JSON.stringify(new URL('../../../infra/local/dynamodb.ts', import.meta.url).href)})
         const dynamodb = await startDynamoDb({ path: ${JSON.stringify(path)}, keys: ${JSON.stringify(testKeys)} })
         console.log(dynamodb.endpoint)`,
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    )
    const ids = Array.from({ length: 40 }, (_, index) => `SESSION#${index}`)
    const acknowledged = new Map<string, number>()
    try {
      const [line] = await once(child.stdout, 'data')
      const doomed = clientOf(String(line).trim())
      await createTable(doomed)
      const write = async (id: string, round: number) => {
        await doomed.send(
          new UpdateItemCommand({
            TableName: 'gatehouse',
            Key: { pk: { S: 'TEAM#t' }, sk: { S: id } },
            UpdateExpression: 'SET due_pk = :due, due_at = :at',
            ExpressionAttributeValues: { ':due': { S: 'due' }, ':at': { S: String(round).padStart(6, '0') } },
          }),
        )
        acknowledged.set(id, round)
        if (acknowledged.size === ids.length && round > 2) child.kill('SIGKILL')
      }
      const writers = ids.map(async (id) => {
        for (let round = 1; ; round += 1) await write(id, round)
      })
      await Promise.allSettled(writers)
      doomed.destroy()
    } finally {
      child.kill('SIGKILL')
    }

    const again = await startDynamoDb({ path, keys: testKeys })
    const client = clientOf(again.endpoint)
    const { Items: items = [] } = await client.send(
      new QueryCommand({
        TableName: 'gatehouse',
        KeyConditionExpression: 'pk = :team',
        ExpressionAttributeValues: { ':team': { S: 'TEAM#t' } },
      }),
    )
    const { Items: due = [] } = await client.send(
      new QueryCommand({
        TableName: 'gatehouse',
        IndexName: 'due',
        KeyConditionExpression: 'due_pk = :due',
        ExpressionAttributeValues: { ':due': { S: 'due' } },
      }),
    )
    const bySession = (a: { sk?: { S?: string } }, b: { sk?: { S?: string } }) =>
      String(a.sk?.S).localeCompare(String(b.sk?.S))
    expect(items.length).toBe(ids.length)
    expect(due.toSorted(bySession)).toEqual(items.toSorted(bySession))
    for (const item of items) {
      expect(Number(item.due_at?.S)).toBeGreaterThanOrEqual(acknowledged.get(String(item.sk?.S)) ?? 0)
    }
    client.destroy()
    await again.close()
  }, 20_000)
})
