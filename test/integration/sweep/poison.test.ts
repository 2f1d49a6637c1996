import { PutCommand } from '@aws-sdk/lib-dynamodb'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { delayAfter } from '../../../functions/sweep/poison.ts'
import { newMemory } from '../../../functions/sweep/round.ts'
import { newId } from '../../../lib/ids.ts'
import { dueShard, itemKey, objectKey } from '../../../lib/store/keys.ts'
import { type Bench, freshTeam, type Id, minute, startBench } from './bench.ts'

let bench: Bench
const close = () => bench?.close()
beforeAll(async () => {
  bench = await startBench()
}, 60_000)
afterAll(close)
beforeEach(() => bench.pass(120 * minute))

/** A row that is nothing but its keys and something that is no session. */
const putRow = async (dueMs: number): Promise<Id> => {
  const id = { team: freshTeam(), id: newId('ses') }
  const row = { due_shard: dueShard(id.id), due_at: new Date(dueMs).toISOString(), document: 'damaged' }
  await bench.pieces.clients.dynamo.send(
    new PutCommand({
      TableName: bench.pieces.settings.table,
      Item: { ...itemKey.session(id.team, id.id), ...row },
    }),
  )
  return id
}
const dueAt = async (id: Id): Promise<number> => {
  const rows = await bench.platform.sessions.due(null, 10_000)
  return Date.parse(rows.find((row) => row.id === id.id)?.due_at ?? '')
}

it.each([
  ['a process that goes on', true],
  ['processes that each forget what failed', false],
])(
  '200 rows that can’t be read, all due before it, do not keep a session from being repaired by %s',
  async (_, goesOn) => {
    const rows: Id[] = []
    for (let n = 0; n < 200; n++) rows.push(await putRow(bench.clock.now - 90 * minute + n))
    const id = await bench.session('running', 'Code')
    await bench.stopExecution(`${id.id}-1`)
    bench.pass(minute)
    const memory = newMemory()
    let rounds = 0
    while ((await bench.item(id)).runtime.attempt === 1) {
      await bench.round({ limit: 50, ...(goesOn ? { memory } : {}) })
      rounds += 1
    }
    expect(rounds).toBe(5)
    if (goesOn) expect(await bench.round({ limit: 50, memory })).toMatchObject({ looked: 0, faults: [] })
    bench.pass(minute)
    const failed = (await bench.round({ memory })).faults.map((fault) => fault.id)
    expect(failed.toSorted()).toEqual(rows.map((row) => row.id).toSorted())
    // They would be due for ever.
    for (const { team, id: damaged } of rows)
      await bench.pieces.clients.dynamo.send(
        new PutCommand({ TableName: bench.pieces.settings.table, Item: itemKey.session(team, damaged) }),
      )
  },
  120_000,
)

it('what fails again and again is tried less and less often', async () => {
  const memory = newMemory()
  const row = await putRow(bench.clock.now)
  const delays: number[] = []
  for (let n = 0; n < 9; n++) {
    expect((await bench.round({ memory })).faults.map((fault) => fault.id)).toContain(row.id)
    delays.push((await dueAt(row)) - bench.clock.now)
    bench.pass((delays.at(-1) ?? 0) - 1)
    expect((await bench.round({ memory })).faults).toEqual([])
    bench.pass(1)
  }
  expect(delays).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60].map((minutes) => minutes * minute))
  expect(delayAfter(1_000_000)).toBe(60 * minute)
})

it('a session whose repair fails is not tried again at once though its worker brings its time back', async () => {
  const memory = newMemory()
  const id = await bench.session('running', 'Code')
  await bench.platform.sessions.update(id, () => ({
    actor: { kind: 'person', id: 'ada' },
    facts: [{ type: 'operator_guidance', data: { text: 'More', status: 'accepted', by: 'ada' } }],
  }))
  const { outbox } = await bench.item(id)
  const key = objectKey.segment(id.team, id.id, outbox[0]?.sequence ?? 0)
  await bench.platform.blobs.put(key, '{"another":"entry"}\n')
  bench.pass(minute)
  const faulty = async () => (await bench.round({ memory })).faults.map((fault) => fault.id)
  expect(await faulty()).toContain(id.id)
  await bench.platform.sessions.update(id, () => ({ actor: { kind: 'worker', id: 'wrk' }, facts: [] }))
  expect(await dueAt(id)).toBeLessThanOrEqual(bench.clock.now)
  expect(await faulty()).not.toContain(id.id)
  bench.pass(2 * minute)
  expect(await faulty()).toContain(id.id)
  expect((await bench.item(id)).outbox).toEqual(outbox)
})

it('a round that has no time left begins nothing more', async () => {
  const ids: Id[] = []
  for (let n = 0; n < 6; n++) ids.push(await bench.session('running', 'Code'))
  bench.pass(minute)
  let asked = 0
  await bench.round({ hasTime: () => asked++ < 2 })
  const looked = await Promise.all(ids.map(async (id) => (await bench.item(id)).runtime.looked_at))
  const now = new Date(bench.clock.now).toISOString()
  expect(looked.filter((at) => at === now).length).toBeLessThanOrEqual(2)
})
