import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startDynamoDb } from '../../infra/local/dynamodb.ts'
import { createBlobs } from '../../lib/store/blobs.ts'
import { connect } from '../../lib/store/clients.ts'
import { createJournals } from '../../lib/store/journals.ts'
import { ensureTable } from '../../lib/store/table.ts'
import { testKeys } from './keys.ts'

type Service = { endpoint: string; close: () => Promise<void> }
export type DynamoBackend = { name: string; start: () => Promise<Service> }

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}

const answers = (endpoint: string): Promise<boolean> =>
  fetch(endpoint).then(
    () => true,
    () => false,
  )

/** AWS's own DynamoDB Local from its folder, as a child in a group of its own. */
const startDynamoDbLocal = async (folder: string): Promise<Service> => {
  const port = await freePort()
  const libraries = `-Djava.library.path=${join(folder, 'DynamoDBLocal_lib')}`
  const jar = join(folder, 'DynamoDBLocal.jar')
  const child = spawn('java', [libraries, '-jar', jar, '-inMemory', '-port', String(port)], {
    cwd: folder,
    detached: true,
    stdio: 'ignore',
  })
  const ended = once(child, 'exit')
  const close = async () => {
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
      process.kill(-child.pid, 'SIGKILL')
      await ended
    }
  }
  const endpoint = `http://127.0.0.1:${port}`
  for (let tries = 0; !(await answers(endpoint)); tries++) {
    if (tries === 300 || child.exitCode !== null) {
      await close()
      throw new Error(`DynamoDB Local in ${folder} does not answer`)
    }
    await sleep(100)
  }
  return { endpoint, close }
}

const localFolder = process.env.GATEHOUSE_DYNAMODB_LOCAL

/** The embedded DynamoDB, and AWS's own where GATEHOUSE_DYNAMODB_LOCAL names the folder of its jar. */
export const dynamoBackends: DynamoBackend[] = [
  { name: 'the embedded DynamoDB', start: () => startDynamoDb({ keys: testKeys }) },
  ...(localFolder !== undefined && existsSync(join(localFolder, 'DynamoDBLocal.jar'))
    ? [{ name: 'DynamoDB Local', start: () => startDynamoDbLocal(localFolder) }]
    : []),
]

/** A backend with our table in it. */
export const openTable = async (backend: DynamoBackend, table = 'gatehouse') => {
  const service = await backend.start()
  const { dynamo, s3, sfn } = connect(
    { region: 'us-east-1', table, bucket: '', state_machine_arn: '', dynamodb: service.endpoint },
    testKeys,
  )
  await ensureTable(dynamo, table)
  return {
    dynamo,
    table,
    /** Of a bucket that is not there: what these tests write never leaves the table. */
    journals: createJournals(s3, '', createBlobs(s3, ''), async () => null),
    close: async () => {
      for (const client of [dynamo, s3, sfn]) client.destroy()
      await service.close()
    },
  }
}
