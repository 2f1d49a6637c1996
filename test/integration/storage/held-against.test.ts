import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DeleteCommand, GetCommand, PutCommand } from '@aws-sdk/lib-dynamodb'
import { afterEach, expect, test, vi } from 'vitest'
import { localTeam } from '../../../infra/local/admin-token.ts'
import { type Stack, startStack } from '../../../infra/local/stack.ts'
import type { Clients } from '../../../lib/store/clients.ts'
import { itemKey } from '../../../lib/store/keys.ts'
import { type Client, createClient, type SessionView } from '../../e2e/client.ts'
import { makeRepository, temporaryFolder } from '../../repositories.ts'

// What is awaited is a fact; how long it takes is the machine's matter.
vi.setConfig({ testTimeout: 120_000 })

const table = 'gatehouse'
const running: { stack: Stack | null } = { stack: null }
const stop = async () => {
  await running.stack?.close()
  running.stack = null
}
afterEach(stop)

const start = async (home: string, log: string[] = []) => {
  const clients: Clients[] = []
  const stack = await startStack({
    ...{ port: 0, home, concurrency: 2, log: (line) => log.push(line) },
    onClients: (made) => clients.push(made),
  })
  running.stack = stack
  const [made] = clients
  if (!made) throw new Error('the stack made no clients')
  return { stack, dynamo: made.dynamo, api: createClient(stack.url, stack.adminToken) }
}

const begin = async (api: Client): Promise<string> => {
  const { directory } = makeRepository()
  const { id } = await api.start({
    ...{ repo: directory, intent: 'Be done', engine_command: 'touch done', mode: 'auto' },
    contract: { checks: [{ name: 'done', command: 'test -e done' }] },
  })
  return id
}

const merged = async (api: Client, id: string) => {
  await api.untilGate(id, 'approval')
  await api.approve(id)
  return api.settled(id)
}

/** What of a session its journal tells. */
const lasting = ({ compute: _, version: __, ...rest }: SessionView) => rest

const rowOf = (id: string) => ({ TableName: table, Key: itemKey.session(localTeam, id) })

test('sessions whose rows are missing or behind are rebuilt from their journals, and go on', async () => {
  const home = temporaryFolder()
  const first = await start(home)
  const [lost, old] = await Promise.all([begin(first.api), begin(first.api)])
  const early = (await first.dynamo.send(new GetCommand({ ...rowOf(old), ConsistentRead: true }))).Item
  const before = await Promise.all([lost, old].map((id) => merged(first.api, id)))
  const gate = await begin(first.api)
  await first.api.untilGate(gate, 'approval')
  await first.dynamo.send(new DeleteCommand(rowOf(lost)))
  await first.dynamo.send(new DeleteCommand(rowOf(gate)))
  await first.dynamo.send(new PutCommand({ TableName: table, Item: early }))
  await stop()
  const rest = join(home, 's3', 'buckets', table, 'teams', localTeam, 'sessions', 'ses_rest', 'journal')
  mkdirSync(rest, { recursive: true })
  writeFileSync(join(rest, '000000000007.jsonl._S3rver_object'), 'late\n')

  const log: string[] = []
  const { api, dynamo, stack } = await start(home, log)
  const named = log.filter((line) => line.startsWith('rebuilt from its journal'))
  expect(named).toHaveLength(3)
  expect(named.join('\n')).toMatch(new RegExp(`${lost} of team ${localTeam}: its row is missing`))
  expect(named.join('\n')).toMatch(new RegExp(`${old} of team ${localTeam}: its row knows of entries up to`))
  expect(log.filter((line) => line.startsWith('left as it is: ses_rest of team'))).toHaveLength(1)
  expect(readdirSync(rest)).toHaveLength(1)
  for (const one of before) {
    const now = await api.get(one.id)
    expect(lasting(now)).toEqual(lasting(one))
  }
  // The start takes it up as after a lost execution.
  const isParked = async () =>
    (await stack.platform.sessions.require({ team: localTeam, id: gate })).runtime.task !== null
  await expect.poll(isParked, { timeout: 30_000 }).toBe(true)
  expect((await merged(api, gate)).state).toBe('merged')

  const { document: _, ...torn } = (await dynamo.send(new GetCommand(rowOf(old)))).Item ?? {}
  await dynamo.send(new PutCommand({ TableName: table, Item: torn }))
  const answer = await api.call('GET', `/v1/sessions/${old}`)
  expect(answer.body).toMatchObject({ code: 'journal_damaged', detail: expect.stringContaining('document') })
  expect((await api.get(lost)).id).toBe(lost)
})

test('a session that can’t be rebuilt is named, and the start is refused with nothing changed', async () => {
  const home = temporaryFolder()
  const { dynamo, api } = await start(home)
  const id = await begin(api)
  await api.untilGate(id, 'approval')
  await dynamo.send(new DeleteCommand(rowOf(id)))
  await stop()
  const folder = join(home, 's3', 'buckets', table, 'teams', localTeam, 'sessions', id, 'journal')
  const [segment = ''] = readdirSync(folder).filter((name) => name.endsWith('_object'))
  const file = join(folder, segment)
  writeFileSync(file, readFileSync(file, 'utf8').replace('Be done', 'Be gone'))
  await expect(start(home)).rejects.toThrow(
    new RegExp(`${id} of team ${localTeam}: its row is missing, and it can’t`),
  )
  expect(readFileSync(file, 'utf8')).toContain('Be gone')
})
