import { GetCommand, PutCommand } from '@aws-sdk/lib-dynamodb'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { newId } from '../../../lib/ids.ts'
import { allDueShards, dueShard, itemKey } from '../../../lib/store/keys.ts'
import { createSessions } from '../../../lib/store/sessions.ts'
import { ensureTable } from '../../../lib/store/table.ts'
import { dynamoBackends, openTable } from '../../support/dynamo.ts'
import { at, creationChange, epochMs } from '../../support/sessions.ts'

describe.each(dynamoBackends)('what is due on $name', (backend) => {
  let open: Awaited<ReturnType<typeof openTable>>
  let sessions: ReturnType<typeof createSessions>
  let table: string
  let tables = 0

  const freshTable = async () => {
    table = `gatehouse-${tables++}`
    await ensureTable(open.dynamo, table)
    sessions = createSessions(open.dynamo, table, () => epochMs, open.journals)
  }
  beforeAll(async () => {
    open = await openTable(backend)
  }, 60_000)
  beforeEach(freshTable)
  afterAll(() => open.close())

  /** A row that is nothing but its keys and something that is no session. */
  const putRow = async (dueMs: number, id = newId('ses'), team = 'team') => {
    const row = { due_shard: dueShard(id), due_at: at(dueMs), document: 'damaged', runtime: [] }
    await open.dynamo.send(
      new PutCommand({ TableName: table, Item: { ...itemKey.session(team, id), ...row } }),
    )
    return { team, id, due_at: at(dueMs) }
  }
  const idIn = (shard: string): string => {
    for (;;) {
      const id = newId('ses')
      if (dueShard(id) === shard) return id
    }
  }

  it('is the oldest first over all shards, and no more than asked for', async () => {
    const rows: Awaited<ReturnType<typeof putRow>>[] = []
    for (const [index, shard] of allDueShards.entries())
      for (const n of [0, 1, 2]) rows.push(await putRow(1000 * ((index * 7 + n * 5) % 12), idIn(shard)))
    const expected = rows.toSorted((a, b) =>
      a.due_at === b.due_at ? (a.id < b.id ? -1 : 1) : a.due_at < b.due_at ? -1 : 1,
    )
    await fc.assert(
      fc.asyncProperty(
        fc.option(fc.integer({ min: -1, max: 12 })),
        fc.integer({ min: 1, max: 14 }),
        async (seconds, limit) => {
          const until = seconds === null ? null : epochMs + 1000 * seconds
          const due = expected.filter(({ due_at }) => until === null || Date.parse(due_at) <= until)
          expect(await sessions.due(until, limit)).toEqual(due.slice(0, limit))
        },
      ),
      { numRuns: 30 },
    )
  })

  it('counts many that wait in one shard for no more than one that waits in another', async () => {
    const [first = '', second = ''] = allDueShards
    for (let n = 0; n < 8; n++) await putRow(1000 + n, idIn(first))
    const oldest = await putRow(999, idIn(second))
    const youngest = await putRow(2000, idIn(second))
    expect(await sessions.due(null, 3)).toContainEqual(oldest)
    expect(await sessions.due(null, 3)).not.toContainEqual(youngest)
    expect(await sessions.due(null, 100)).toHaveLength(10)
  })

  it('holds rows that do not parse, which are put off and stand in nobody’s way', async () => {
    const damaged = await Promise.all([1, 2, 3, 4, 5].map((n) => putRow(n)))
    const id = { team: 'team', id: newId('ses') }
    await sessions.create(id, creationChange(id.id, id.team))
    const now = epochMs + 3_600_000
    for (const row of damaged) await expect(sessions.get(row)).rejects.toThrow()

    const reached: string[] = []
    for (let round = 0; round < 3; round++) {
      for (const row of await sessions.due(now, 2)) {
        reached.push(row.id)
        expect(await sessions.postpone(row, now + 60_000)).toBe(true)
      }
    }
    expect(reached).toEqual([...damaged.map((row) => row.id), id.id])
    expect(await sessions.due(now, 10)).toEqual([])
    expect((await sessions.due(now + 60_000, 10)).map((row) => row.id).toSorted()).toEqual(reached.toSorted())
  })

  it('changes by being put off in its time alone', async () => {
    const row = await putRow(0)
    const rowOf = async () =>
      (await open.dynamo.send(new GetCommand({ TableName: table, Key: itemKey.session(row.team, row.id) })))
        .Item
    const before = await rowOf()
    await sessions.postpone(row, epochMs + 60_000)
    expect(await rowOf()).toEqual({ ...before, due_at: at(60_000) })
  })

  it('is not put off by whoever saw another time, and not made by putting it off', async () => {
    const row = await putRow(0)
    const [first, second] = await Promise.all([1, 2].map((n) => sessions.postpone(row, epochMs + n * 1000)))
    expect([first, second].filter(Boolean)).toHaveLength(1)
    const gone = { team: 'team', id: newId('ses'), due_at: at(0) }
    expect(await sessions.postpone(gone, epochMs + 1000)).toBe(false)
    expect((await sessions.due(null, 1000)).map(({ id }) => id)).not.toContain(gone.id)
  })
})
