import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startDynamoDb } from '../../../infra/local/dynamodb.ts'
import { startStack } from '../../../infra/local/stack.ts'
import { testKeys } from '../../support/keys.ts'

test('a database whose file CURRENT is gone is refused, and none of its files is touched', async () => {
  const path = mkdtempSync(join(tmpdir(), 'gatehouse-damaged-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  await (await startDynamoDb({ keys: testKeys, path })).close()
  rmSync(join(path, 'CURRENT'))
  const before = readdirSync(path)
  await expect(startDynamoDb({ keys: testKeys, path })).rejects.toThrow('the file CURRENT is missing')
  expect(readdirSync(path)).toEqual(before)
})

test('a database that another holds is refused by that reason', async () => {
  const path = mkdtempSync(join(tmpdir(), 'gatehouse-held-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  const first = await startDynamoDb({ keys: testKeys, path })
  onTestFinished(first.close)
  await fetch(first.endpoint)
  await expect(startDynamoDb({ keys: testKeys, path })).rejects.toThrow('is held by another process')
})

test('a home whose database is gone, but not the objects of its sessions, is refused and left as it is', async () => {
  const home = mkdtempSync(join(tmpdir(), 'gatehouse-emptied-'))
  onTestFinished(() => rmSync(home, { recursive: true, force: true }))
  mkdirSync(join(home, 's3', 'buckets', 'gatehouse', 'sessions'), { recursive: true })
  const starting = startStack({ port: 0, home, concurrency: 1, log: () => {} })
  onTestFinished(async () => {
    const started = await starting.catch(() => null)
    await started?.close()
  })
  await expect(starting).rejects.toThrow('that knows them is missing')
  expect(readdirSync(home)).toEqual(['s3'])
})
