import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { SessionItem } from '../../../lib/session/item.ts'
import { objectKey } from '../../../lib/store/keys.ts'
import { removeSession } from '../../../lib/store/retention.ts'
import { createTail, type Next } from '../../../lib/store/tail.ts'
import { temporaryFolder } from '../../repositories.ts'
import { append, errors, newStored, team, terminalFact } from '../../support/api-server.ts'
import { type Pieces, startPieces } from '../../support/pieces.ts'
import { newSession, system } from '../../support/sessions.ts'

/** A poll that is soon there again, and looks at the session after four of its reads. */
const waits = { firstMs: 1, mostMs: 5, lookMs: 20 }
const long = 30_000

let pieces: Pieces
/** How often each key of the bucket was read. */
const reads = new Map<string, number>()
beforeAll(async () => {
  pieces = await startPieces(temporaryFolder())
  pieces.clients.s3.middlewareStack.add(
    (next, { commandName }) =>
      (args) => {
        const { Key } = Object(args.input)
        if (commandName === 'GetObjectCommand') reads.set(Key, (reads.get(Key) ?? 0) + 1)
        return next(args)
      },
    { step: 'initialize', name: 'reads' },
  )
}, 60_000)
afterAll(() => pieces.close())

const readsOf = (id: string, first: number) => reads.get(objectKey.segment(team, id, first)) ?? 0
const until = async (isSo: () => boolean): Promise<void> => {
  while (!isSo()) await nextTurn()
}
const itemOf = (id: string) => pieces.platform.sessions.require({ team, id })
const nobody = () => new AbortController().signal

describe('those who wait for the same entry', () => {
  it('share one poll and its answer, and the next who asks begins anew', async () => {
    const { platform } = pieces
    const tail = createTail(platform, waits)
    const id = await newStored(platform)
    const item = await itemOf(id)
    const first = item.journal_head.sequence + 1
    const all = Array.from({ length: 100 }, () => tail.next(item, first, { signal: nobody(), ms: long }))
    await until(() => readsOf(id, first) >= 3)
    await append(platform, id, errors(2))
    const [one, ...others] = await Promise.all(all)
    expect(one?.entries.map(({ sequence }) => sequence)).toEqual([first, first + 1])
    for (const other of others) expect(other).toBe(one)
    // Reads go on only while the writer has not come to it; a hundred polls would have been hundreds.
    expect(readsOf(id, first)).toBeLessThan(100)
    const again = await tail.next(item, first, { signal: nobody(), ms: long })
    expect(again).toEqual(one)
    expect(again).not.toBe(one)
  })

  it('are told the same when each is alone in its process', async () => {
    const { platform } = pieces
    const id = await newStored(platform)
    const item = await itemOf(id)
    const first = item.journal_head.sequence + 1
    const waiting = [1, 2, 3].map(() =>
      createTail(platform, waits).next(item, first, { signal: nobody(), ms: long }),
    )
    const { journal_head } = await append(platform, id, errors(1))
    for (const next of await Promise.all(waiting))
      expect(next?.entries.map(({ hash }) => hash)).toEqual([journal_head.hash])
  })

  it('end the poll when the last of them leaves, by its signal or its time, and not before', async () => {
    const { platform } = pieces
    const tail = createTail(platform, waits)
    const [id, other] = [await newStored(platform), await newStored(platform)]
    const item = await itemOf(id)
    const first = item.journal_head.sequence + 1
    const [gone, soon] = [new AbortController(), new AbortController()]
    const left = [gone, gone, soon].map(({ signal }) => tail.next(item, first, { signal, ms: long }))
    const late = tail.next(item, first, { signal: nobody(), ms: 1 })
    gone.abort()
    expect(await Promise.all([left[0], left[1], late])).toEqual([null, null, null])
    const before = readsOf(id, first)
    await until(() => readsOf(id, first) > before + 2)
    soon.abort()
    expect(await left[2]).toBeNull()
    const after = readsOf(id, first)
    // Another's poll goes on at the same pace meanwhile.
    const going = new AbortController()
    const otherItem = await itemOf(other)
    const canary = tail.next(otherItem, first, { signal: going.signal, ms: long })
    await until(() => readsOf(other, first) >= 10)
    expect(readsOf(id, first)).toBeLessThanOrEqual(after + 1)
    going.abort()
    await canary
    expect(await tail.next(item, first, { signal: AbortSignal.abort(), ms: long })).toBeNull()
  })
})

describe('who finds nothing for a while looks at the session, and', () => {
  const next = (item: SessionItem, first = item.journal_head.sequence + 1): Promise<Next | null> =>
    createTail(pieces.platform, waits).next(item, first, { signal: nobody(), ms: long })

  it('is told what a writer decided that died before it drained', async () => {
    const { platform } = pieces
    const id = await newStored(platform)
    const item = await itemOf(id)
    const waiting = next(item)
    const decided = await platform.sessions.update({ team, id }, () => ({ actor: system, facts: errors(3) }))
    expect((await waiting)?.entries.map(({ sequence }) => sequence)).toEqual(
      decided.outbox.map(({ sequence }) => sequence),
    )
    // The item is the writer's: reading has not changed it.
    expect(await itemOf(id)).toEqual(decided)
  })

  it('goes on in the middle of a segment', async () => {
    const { platform } = pieces
    const id = await newStored(platform)
    const { journal_head } = await append(platform, id, errors(6))
    const told = await next(await itemOf(id), journal_head.sequence - 2)
    expect(told?.entries.map(({ sequence }) => sequence)).toEqual(
      [2, 1, 0].map((back) => journal_head.sequence - back),
    )
  })

  it('is told that nothing more comes when it stands at the end of one that has ended', async () => {
    const { platform } = pieces
    const id = await newStored(platform)
    const item = await itemOf(id)
    const ended = await append(platform, id, [terminalFact])
    const told = await next(item, ended.journal_head.sequence + 1)
    expect(told?.entries).toEqual([])
    expect(told?.item.document.state).toBe('abandoned')
  })

  it('is told that the session is gone', async () => {
    const { platform } = pieces
    const id = await newStored(platform)
    await append(platform, id, [terminalFact])
    const item = await platform.sessions.update({ team, id }, () => ({
      ...{ actor: system, facts: [] },
      runtime: { settled: true },
    }))
    const waiting = next(item, item.journal_head.sequence + 5)
    expect(await removeSession(platform, item)).toBe(true)
    await expect(waiting).rejects.toMatchObject({ code: 'not_found' })
    await expect(next(newSession(), 2)).rejects.toMatchObject({ code: 'not_found' })
  })

  it('says so where the bucket has lost what was written', async () => {
    const { platform } = pieces
    const id = await newStored(platform)
    const { journal_head } = await append(platform, id, errors(2))
    const item = await itemOf(id)
    await platform.blobs.removeAll(objectKey.journalPrefix(team, id))
    await expect(next(item, journal_head.sequence - 1)).rejects.toMatchObject({ code: 'journal_damaged' })
  })
})

it('gives who asks for the session what is true after it asked, however many ask', async () => {
  const { platform } = pieces
  const tail = createTail(platform, waits)
  const id = await newStored(platform)
  const seen: { asked: number; got: number }[] = []
  let written = (await itemOf(id)).journal_head.sequence
  const ask = async () => {
    const asked = written
    seen.push({ asked, got: (await tail.now({ team, id })).journal_head.sequence })
  }
  const asking: Promise<void>[] = []
  for (let n = 0; n < 10; n++) {
    asking.push(ask(), ask(), ask())
    written = (await append(platform, id, errors(1))).journal_head.sequence
    asking.push(ask())
  }
  await Promise.all(asking)
  for (const { asked, got } of seen) expect(got).toBeGreaterThanOrEqual(asked)
})
