import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  agentSnapshotSchema,
  fromSnapshotText,
  snapshotSchema,
  toSnapshotText,
} from '../../../lib/journal/snapshot.ts'
import type { SessionItem } from '../../../lib/session/item.ts'
import { objectKey } from '../../../lib/store/keys.ts'
import { createStates } from '../../../lib/store/states.ts'
import { temporaryFolder } from '../../repositories.ts'
import {
  anyThrows,
  beginMixed,
  changeMixed,
  lastOf,
  type Mixed,
  type Throw,
  thrown,
} from '../../support/mixed-journal.ts'
import { type Pieces, startPieces } from '../../support/pieces.ts'
import { type Bytes, bytesOf } from '../../support/prefixes.ts'
import { system } from '../../support/sessions.ts'

let pieces: Pieces
beforeAll(async () => {
  pieces = await startPieces(temporaryFolder())
}, 60_000)
afterAll(() => pieces.close())

const every = 4
const statesOf = ({ platform: { blobs, journals, payloads } }: Pieces) =>
  createStates(blobs, journals, payloads, every)

/** Writes down what a write has decided, as an append does, and notes it. */
const keep = async (before: Mixed, after: Mixed, drains: boolean): Promise<Mixed> => {
  const states = statesOf(pieces)
  const since = before.item.journal_head.sequence
  await Promise.all([states.save(after.item), states.saveAgent(after.item, lastOf(after), since)])
  if (!drains) return after
  await pieces.platform.journals.drain(after.item)
  return changeMixed(after, { actor: system, facts: [], drained: after.item.journal_head.sequence })
}

/** The session that throws lead to, with the bytes of every prefix; every third write stays in the outbox for a while. */
const made = async (
  dice: number,
  throws: readonly Throw[],
): Promise<{ item: SessionItem; zero: Bytes[] }> => {
  const begun = beginMixed(dice)
  let mixed = await keep(begun, begun, true)
  for (const [n, one] of throws.entries()) mixed = await keep(mixed, thrown(mixed, one), n % 3 !== 0)
  return { item: mixed.item, zero: mixed.states.map(bytesOf) }
}

const requireEach = async (item: SessionItem, zero: readonly Bytes[]): Promise<void> => {
  const states = statesOf(pieces)
  for (const [sequence, bytes] of zero.entries())
    expect(bytesOf(await states.at(item, sequence)), `at ${sequence}`).toEqual(bytes)
}

const listed = async (prefix: string): Promise<string[]> => {
  const keys: string[] = []
  for await (const key of pieces.platform.blobs.list(prefix)) keys.push(key)
  return keys
}
const snapshotKeys = async ({ team, id }: SessionItem) => ({
  session: await listed(objectKey.snapshotPrefix(team, id)),
  agent: await listed(objectKey.agentSnapshotPrefix(team, id)),
})

it('a state folded from the nearest snapshot is that folded from zero, for every prefix', async () => {
  const seen = { session: 0, agent: 0, prefixes: 0 }
  await fc.assert(
    fc.asyncProperty(fc.nat({ max: 1000 }), anyThrows, async (dice, throws) => {
      const { item, zero } = await made(dice, throws)
      await requireEach(item, zero)
      const keys = await snapshotKeys(item)
      seen.session += keys.session.length
      seen.agent += keys.agent.length
      seen.prefixes += zero.length
    }),
    { numRuns: 6 },
  )
  expect(seen.session).toBeGreaterThan(10)
  expect(seen.agent).toBeGreaterThan(5)
}, 60_000)

describe('a snapshot', () => {
  /** A session with several snapshots of both kinds. */
  const someSession = async () => {
    const [throws = []] = fc.sample(anyThrows, { numRuns: 1, seed: 11 })
    const { item, zero } = await made(6, throws)
    const keys = await snapshotKeys(item)
    expect(keys.session.length, 'snapshots').toBeGreaterThan(3)
    expect(keys.agent.length, 'agent snapshots').toBeGreaterThan(1)
    return { item, zero, keys }
  }
  const read = async (key: string): Promise<string> => (await pieces.platform.blobs.get(key)) ?? ''
  /** The last snapshot of each kind before the head, where the item itself is one. */
  const lastKept = async ({ item, keys }: Awaited<ReturnType<typeof someSession>>) => {
    const { team, id, journal_head: head } = item
    const before = keys.session.filter((one) => one < objectKey.snapshot(team, id, head.sequence))
    const [key, agentKey] = [before.toSorted().at(-1) ?? '', keys.agent.toSorted().at(-1) ?? '']
    const kept = fromSnapshotText(snapshotSchema, await read(key))
    const keptAgent = fromSnapshotText(agentSnapshotSchema, await read(agentKey))
    if (!kept || !keptAgent) throw new Error('a snapshot is as it was written')
    return { key, kept, agentKey, keptAgent }
  }

  it('is gone on from', async () => {
    const session = await someSession()
    const { item } = session
    const { key, kept, agentKey, keptAgent } = await lastKept(session)
    const { blobs } = pieces.platform
    await blobs.put(key, toSnapshotText({ ...kept, document: { ...kept.document, intent: 'planted' } }))
    await blobs.put(
      agentKey,
      toSnapshotText({ ...keptAgent, agent: { ...keptAgent.agent, metadata: { 'a.b': 'planted' } } }),
    )
    const states = statesOf(pieces)
    expect((await states.at(item, kept.sequence)).document.intent).toBe('planted')
    expect((await states.at(item, item.journal_head.sequence)).agent.metadata).toEqual({ 'a.b': 'planted' })
  })

  it('that is not as it was written is passed over for an older one, and in the end for the whole journal', async () => {
    const { item, zero, keys } = await someSession()
    const damages: ((text: string) => string)[] = [
      (text) => text.replace('"sequence":', '"sequence": '),
      (text) => `${text.slice(0, -9)}${text.at(-9) === '0' ? '1' : '0'}${text.slice(-8)}`,
      (text) => text.slice(0, text.length >> 1),
      () => '{}',
      () => '{"digest":"sha256:0","snapshot":{}}',
      (text) => text.replace('"format":1', '"format":2'),
    ]
    const all = [...keys.session.toSorted(), ...keys.agent.toSorted()]
    const damage = (key: string, n: number) =>
      read(key).then((text) => pieces.platform.blobs.put(key, (damages[n % damages.length] ?? String)(text)))
    for (const [n, key] of all.entries()) if (n % 2 === 1) await damage(key, n >> 1)
    await requireEach(item, zero)
    for (const [n, key] of all.entries()) if (n % 2 === 0) await damage(key, n >> 1)
    await requireEach(item, zero)
  }, 60_000)

  it('of another journal, whole as it is, is not gone on from', async () => {
    const session = await someSession()
    const { item, zero } = session
    const { key, kept, agentKey, keptAgent } = await lastKept(session)
    const hash = `sha256:${'1'.repeat(64)}`
    const { blobs } = pieces.platform
    await blobs.put(key, toSnapshotText({ ...kept, hash, document: { ...kept.document, intent: 'other' } }))
    await blobs.put(
      agentKey,
      toSnapshotText({ ...keptAgent, hash, agent: { ...keptAgent.agent, metadata: { 'a.b': 'other' } } }),
    )
    const states = statesOf(pieces)
    for (const sequence of [kept.sequence, item.journal_head.sequence])
      expect(bytesOf(await states.at(item, sequence))).toEqual(zero[sequence])
  })

  it('in another format, its digest right, is not gone on from', async () => {
    const { kept } = await lastKept(await someSession())
    const older = toSnapshotText(Object.assign({}, kept, { format: 0 }))
    expect(fromSnapshotText(snapshotSchema, older)).toBeNull()
    expect(fromSnapshotText(snapshotSchema, toSnapshotText(kept))).toEqual(kept)
  })

  it('has the same bytes whoever writes it, however often', async () => {
    const session = await someSession()
    const { item } = session
    const { agentKey, keptAgent } = await lastKept(session)
    const before = await read(agentKey)
    // Whoever comes second has folded the state anew, and from another snapshot.
    await pieces.platform.blobs.removeAll(objectKey.agentSnapshotPrefix(item.team, item.id))
    const again = await statesOf(pieces).at(item, keptAgent.sequence)
    await statesOf(pieces).saveAgent(item, again, 0)
    expect(await read(agentKey)).toBe(before)
  })
})

describe('a state', () => {
  it('can’t be had behind the head, or where the journal is missing', async () => {
    const { item } = await made(2, [{ kind: 'events', count: 3 }])
    const states = statesOf(pieces)
    const { sequence } = item.journal_head
    await expect(states.at(item, sequence + 1)).rejects.toMatchObject({ code: 'journal_damaged' })
    await pieces.platform.blobs.removeAll(objectKey.journalPrefix(item.team, item.id))
    await expect(states.at({ ...item, outbox: [] }, 1)).rejects.toMatchObject({ code: 'journal_damaged' })
  })

  it('is found with its entries on their way out, and with the same ones in the journal already', async () => {
    const before = beginMixed(1)
    const { item, states: zero } = await keep(before, thrown(before, { kind: 'events', count: 5 }), false)
    await requireEach(item, zero.map(bytesOf))
    await pieces.platform.journals.drain(before.item)
    await requireEach(item, zero.map(bytesOf))
    await pieces.platform.journals.drain(item)
    await requireEach(item, zero.map(bytesOf))
  })
})
