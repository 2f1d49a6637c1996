import { UpdateCommand } from '@aws-sdk/lib-dynamodb'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { newMemory } from '../../../functions/sweep/round.ts'
import { limits } from '../../../lib/limits.ts'
import type { SessionItem } from '../../../lib/session/item.ts'
import type { Clients } from '../../../lib/store/clients.ts'
import { itemKey, objectKey } from '../../../lib/store/keys.ts'
import { proveJournal } from '../../../lib/store/proof.ts'
import { Crash, crashAt } from '../../support/pieces.ts'
import { settledWith } from '../../support/settled.ts'
import { type Bench, freshTeam, type Id, minute, startBench } from './bench.ts'

let bench: Bench
beforeAll(async () => {
  bench = await startBench()
}, 60_000)
afterAll(() => bench.close())

const settled = () => settledWith(bench.pieces, [3, 1, 4], { team: freshTeam() })
const keysOf = async ({ team, id }: Id): Promise<string[]> => {
  const keys: string[] = []
  for await (const key of bench.platform.blobs.list(objectKey.session(team, id)))
    keys.push(key.slice(objectKey.session(team, id).length).replace(/[^/]*$/, ''))
  return keys
}
const isDue = async ({ id }: Id) =>
  (await bench.platform.sessions.due(null, 10_000)).some((row) => row.id === id)

/** The journal is in its sealed object and nowhere else, and all that was written before is in it. */
const requireSealed = async (before: SessionItem): Promise<void> => {
  const item = await bench.item(before)
  expect(item.runtime.sealed).toMatchObject({ cleared: true, through: before.journal_head.sequence })
  expect(await keysOf(item)).toEqual(['sealed/'])
  expect(await proveJournal(bench.platform, item)).toMatchObject({ ok: true })
}

it('a settled session is sealed, and its segments go once nobody reads them any more', async () => {
  const item = await settled()
  bench.pass(minute)
  await bench.repair()
  const { runtime } = await bench.item(item)
  expect(runtime.sealed).toMatchObject({ cleared: false, through: item.journal_head.sequence })
  expect(await keysOf(item)).toContain('journal/')
  // Its execution, if one ran on, would be found: it is not held for live.
  bench.calls.length = 0
  await bench.round()
  expect(bench.calls.filter((name) => name === 'GetCommand')).toEqual([])
  bench.pass(limits.seal.graceMs - minute)
  await bench.round({ all: true })
  expect(await keysOf(item)).toContain('journal/')
  bench.pass(120 * minute)
  await bench.repair()
  await requireSealed(item)
  expect(await bench.repairs(item)).toEqual([])
})

it('a session from before there were seals is found and sealed, and its team then left alone', async () => {
  const item = await settled()
  const Key = itemKey.session(item.team, item.id)
  await bench.pieces.clients.dynamo.send(
    new UpdateCommand({
      ...{ TableName: bench.pieces.settings.table, Key },
      UpdateExpression: 'REMOVE runtime.sealed, due_at, due_shard',
    }),
  )
  const memory = newMemory()
  expect(await isDue(item)).toBe(false)
  expect(await bench.round({ memory })).toMatchObject({ faults: [] })
  // The sweep knows a team by its sessions that are due.
  expect((await bench.item(item)).runtime.sealed).toBeNull()
  await bench.session('running', 'Code', { team: item.team })
  const asked: string[] = []
  const { unsealed } = bench.platform.sessions
  bench.platform.sessions.unsealed = (team, limit) => {
    asked.push(team)
    return unsealed(team, limit)
  }
  for (const _ of ['once', 'again']) expect(await bench.round({ memory })).toMatchObject({ faults: [] })
  bench.platform.sessions.unsealed = unsealed
  expect(asked.filter((team) => team === item.team)).toHaveLength(1)
  expect((await bench.item(item)).runtime.sealed).not.toBeNull()
  expect(await isDue(item)).toBe(true)
  bench.pass(120 * minute)
  await bench.round()
  await requireSealed(item)
})

it('a journal that does not prove is a fault that is told and put off, and keeps no other from being sealed', async () => {
  const [broken, whole] = [await settled(), await settled()]
  const key = objectKey.segment(broken.team, broken.id, 4)
  const text = (await bench.platform.blobs.get(key)) ?? ''
  await bench.platform.blobs.put(key, text.replace('zażółć', 'zazolc'))
  bench.pass(minute)
  const memory = newMemory()
  const { faults } = await bench.round({ memory })
  expect(faults).toMatchObject([{ id: broken.id, error: { code: 'journal_damaged' } }])
  expect((await bench.item(whole)).runtime.sealed).not.toBeNull()
  expect((await bench.item(broken)).runtime.sealed).toBeNull()
  expect(await bench.round({ memory })).toMatchObject({ faults: [] })
  await bench.platform.blobs.put(key, text)
  bench.pass(2 * minute)
  expect(await bench.round({ memory })).toMatchObject({ faults: [] })
  expect((await bench.item(broken)).runtime.sealed).not.toBeNull()
  bench.pass(120 * minute)
  await bench.round()
})

it('of several long journals one is sealed in each round', async () => {
  const sizes = Array.from({ length: limits.seal.atOnce.entries / 100 }, () => 100)
  const long = [0, 1].map(() => settledWith(bench.pieces, sizes, { team: freshTeam() }))
  const items = [...(await Promise.all(long)), await settled()]
  const unsealed = async () => {
    const now = await Promise.all(items.map(bench.item))
    return now.filter(({ runtime }) => runtime.sealed === null).length
  }
  for (const left of [1, 0]) {
    bench.pass(minute)
    expect(await bench.round()).toMatchObject({ faults: [] })
    expect(await unsealed()).toBe(left)
  }
  bench.pass(120 * minute)
  await bench.round()
}, 60_000)

/** From its n-th call on the process makes none any more. */
const dieAt = ({ dynamo, s3 }: Clients, n: number, when: 'before' | 'after') => {
  const state = { calls: 0, fired: false }
  const pass = async <Answer>(call: () => Promise<Answer>): Promise<Answer> => {
    state.calls += 1
    if (state.calls < n) return call()
    if (state.calls === n && when === 'after') await call()
    state.fired = true
    throw new Crash(`call ${n}, ${when}`)
  }
  const options = { step: 'initialize', name: 'crash', override: true } as const
  dynamo.middlewareStack.add((next) => (args) => pass(() => next(args)), options)
  s3.middlewareStack.add((next) => (args) => pass(() => next(args)), options)
  return state
}

/** The process dies at every other call of a round; whether there were so many. */
const crashed = async (n: number, when: 'before' | 'after'): Promise<boolean> => {
  const crash = dieAt(bench.pieces.clients, n, when)
  await bench.round().catch((error: unknown) => {
    if (!(error instanceof Crash)) throw error
  })
  crashAt(bench.pieces.clients, 0, 'before')
  return crash.fired
}

it.each(['before', 'after'] as const)(
  'a sealing and a clearing that a process did not live to end are ended, whichever call it died %s',
  async (when) => {
    for (let n = when === 'before' ? 1 : 2, more = true; more; n += 2) {
      const item = await settled()
      bench.pass(minute)
      more = await crashed(n, when)
      const { runtime } = await bench.item(item)
      expect(await proveJournal(bench.platform, item)).toMatchObject({ ok: true })
      bench.pass(2 * minute)
      if (runtime.sealed === null) await bench.round()
      bench.pass(120 * minute)
      more = (await crashed(n, when)) || more
      expect(await proveJournal(bench.platform, item)).toMatchObject({ ok: true })
      bench.pass(2 * minute)
      await bench.round()
      await requireSealed(item)
    }
  },
  120_000,
)
