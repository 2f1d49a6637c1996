import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { startDynamoDb } from '../../../infra/local/dynamodb.ts'
import { requireOwnTable } from '../../../infra/local/storage/identity.ts'
import { connect } from '../../../lib/store/clients.ts'
import { ensureTable } from '../../../lib/store/table.ts'
import { temporaryFolder } from '../../repositories.ts'
import { testKeys } from '../../support/keys.ts'

const table = 'gatehouse'
let file: string
beforeEach(() => {
  file = join(temporaryFolder(), 'identity')
})

const newTable = async () => {
  const { endpoint, close } = await startDynamoDb({ keys: testKeys })
  const settings = { region: 'us-east-1', table, bucket: 'b', state_machine_arn: '', dynamodb: endpoint }
  const { dynamo } = connect(settings, testKeys)
  onTestFinished(async () => {
    dynamo.destroy()
    await close()
  })
  await ensureTable(dynamo, table)
  return { dynamo, table }
}

test('a home and its table get one identity, also where there were sessions before there were identities', async () => {
  const own = await newTable()
  await requireOwnTable(own, file, true)
  const id = readFileSync(file, 'utf8')
  expect(statSync(file).mode & 0o777).toBe(0o600)
  await requireOwnTable(own, file, true)
  expect(readFileSync(file, 'utf8')).toBe(id)
})

test('the table of another home is refused, and neither is changed', async () => {
  const [own, other] = await Promise.all([newTable(), newTable()])
  await requireOwnTable(own, file, false)
  await requireOwnTable(other, join(temporaryFolder(), 'identity'), false)
  const id = readFileSync(file, 'utf8')
  await expect(requireOwnTable(other, file, false)).rejects.toThrow('is that of another data folder')
  expect(readFileSync(file, 'utf8')).toBe(id)
  await requireOwnTable(own, file, true)
})

test('a new table is refused where there are sessions, and taken where there are none', async () => {
  await requireOwnTable(await newTable(), file, false)
  const fresh = await newTable()
  await expect(requireOwnTable(fresh, file, true)).rejects.toThrow('is a new one, but there are sessions')
  await requireOwnTable(fresh, file, false)
  await requireOwnTable(fresh, file, true)
})

test('a file that holds something else is refused and stays', async () => {
  writeFileSync(file, 'torn')
  await expect(requireOwnTable(await newTable(), file, false)).rejects.toThrow('Nothing was changed')
  expect(existsSync(file) && readFileSync(file, 'utf8')).toBe('torn')
})
