import { UpdateCommand } from '@aws-sdk/lib-dynamodb'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { newMemory } from '../../../functions/sweep/round.ts'
import { limits } from '../../../lib/limits.ts'
import { itemKey, objectKey } from '../../../lib/store/keys.ts'
import { aCheckpoint, aSeal, sessionAt } from '../../support/sessions.ts'
import { type Bench, freshTeam, type Id, minute, startBench } from './bench.ts'

let bench: Bench
beforeAll(async () => {
  bench = await startBench()
}, 60_000)
afterAll(() => bench.close())

const dayMs = 24 * 60 * minute
/** A session that ended when the clock began, with nothing left to do. */
const finished = async (team = freshTeam(), more: Parameters<typeof sessionAt>[2] = []): Promise<Id> => {
  const item = sessionAt('merged', 'Settle', more)
  const runtime = { ...item.runtime, settled: true, start_pending: false, sealed: aSeal() }
  const id = await bench.put({ ...item, team, outbox: [], runtime })
  await bench.platform.blobs.put(objectKey.bundle(team, id.id, 'one'), 'work')
  return id
}
const isThere = async ({ team, id }: Id) => {
  const objects: string[] = []
  for await (const key of bench.platform.blobs.list(objectKey.session(team, id))) objects.push(key)
  return { item: (await bench.platform.sessions.get({ team, id })) !== null, objects: objects.length > 0 }
}
const whole = { item: true, objects: true }
const gone = { item: false, objects: false }
const rowsOf = async () => (await bench.platform.sessions.due(null, 10_000)).map(({ id }) => id)

it('a finished session goes when its days are over, with all that belongs to it; retained work stays', async () => {
  const retained = { checkpoint: { ...aCheckpoint(), bundle: 'one' }, reason: 'failed' }
  const [old, kept] = [
    await finished(),
    await finished(freshTeam(), [{ type: 'workspace_retained', data: retained }]),
  ]
  expect(await rowsOf()).toEqual([old.id])
  bench.pass(limits.retention.days * dayMs - 10 * minute)
  await bench.repair()
  expect(await isThere(old)).toEqual(whole)
  bench.pass(10 * minute)
  await bench.repair()
  expect(await isThere(old)).toEqual(gone)
  expect(await isThere(kept)).toEqual(whole)
  expect(await rowsOf()).toEqual([])
  expect(bench.lines.filter((line) => line.id === old.id)).toMatchObject([{ what: 'removal', ...old }])
})

it('a session that its time brought up and that may not go yet is looked at again later', async () => {
  const id = await finished()
  bench.pass(limits.retention.days * dayMs)
  // A rule that keeps more than the limit says.
  const { sessions } = bench.platform
  const before = sessions.finished
  sessions.finished = async () => []
  await bench.repair()
  sessions.finished = before
  expect(await isThere(id)).toEqual(whole)
  bench.pass(60 * minute)
  await bench.repair()
  expect(await isThere(id)).toEqual(gone)
})

it('what a team has beyond its number goes, oldest first, while sessions of it live', async () => {
  const team = freshTeam()
  const ids: Id[] = []
  for (let n = 0; n < 3; n++) ids.push(await finished(team))
  const { sessions } = limits.retention
  const others = Array.from({ length: sessions }, async () => {
    const item = sessionAt('merged', 'Settle')
    const updated_at = new Date(bench.clock.now + minute).toISOString()
    const runtime = { ...item.runtime, settled: true, start_pending: false, sealed: aSeal() }
    return bench.put({ ...item, team, outbox: [], runtime, document: { ...item.document, updated_at } })
  })
  await Promise.all(others)
  await bench.session('running', 'Code', { team })
  bench.pass(2 * minute)
  await bench.repair()
  for (const id of ids) expect(await isThere(id)).toEqual(gone)
  expect(await bench.platform.sessions.finished(team, 1000)).toHaveLength(sessions)
}, 120_000)

it('a team is looked at for its number once an hour, and not in every round', async () => {
  const memory = newMemory()
  const team = freshTeam()
  await bench.session('running', 'Code', { team })
  const looked: string[] = []
  const { sessions } = bench.platform
  const before = sessions.finished
  sessions.finished = (of, limit) => {
    looked.push(of)
    return before(of, limit)
  }
  for (let n = 0; n <= 60; n++) {
    await bench.round({ memory })
    bench.pass(minute)
  }
  sessions.finished = before
  expect(looked.filter((of) => of === team)).toHaveLength(2)
}, 120_000)

it('a removal that was begun is finished, also when a row of a session is all there is to know of it', async () => {
  const id = await finished()
  const { revision } = await bench.item(id)
  expect(await bench.platform.sessions.beginRemoval({ ...id, revision })).toBe(true)
  await bench.pieces.clients.dynamo.send(
    new UpdateCommand({
      TableName: bench.pieces.settings.table,
      Key: itemKey.session(id.team, id.id),
      UpdateExpression: 'SET document = :damaged',
      ExpressionAttributeValues: { ':damaged': 'damaged' },
    }),
  )
  await bench.repair()
  expect(await isThere(id)).toEqual(gone)
  expect(bench.lines.filter((line) => line.id === id.id)).toMatchObject([{ what: 'removal' }])
})
