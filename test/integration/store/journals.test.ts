import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newId } from '../../../lib/ids.ts'
import { type Entry, fromLine } from '../../../lib/journal/entry.ts'
import type { Fact } from '../../../lib/journal/facts.ts'
import { verifyJournal } from '../../../lib/journal/verify.ts'
import { limits } from '../../../lib/limits.ts'
import { changeItem, type SessionItem } from '../../../lib/session/item.ts'
import { objectKey } from '../../../lib/store/keys.ts'
import { temporaryFolder } from '../../repositories.ts'
import { type Pieces, startPieces } from '../../support/pieces.ts'
import { at, newSession, system } from '../../support/sessions.ts'

let pieces: Pieces
beforeAll(async () => {
  pieces = await startPieces(temporaryFolder())
}, 60_000)
afterAll(() => pieces.close())

const grown = (item: SessionItem, count: number, drained?: number): SessionItem => {
  const facts: Fact[] = Array.from({ length: count }, (_, n) => ({
    type: 'error',
    data: { message: `m${n}` },
  }))
  const mark = drained === undefined ? {} : { drained }
  return changeItem(item, { actor: system, facts, ...mark }, at(0))
}

const whole = async (item: SessionItem): Promise<Entry[]> => {
  const all: string[] = []
  for await (const lines of pieces.platform.journals.segments(item)) all.push(...lines)
  return all.map(fromLine)
}

/** The journal as a reader finds it, from its lines and from its pages, is the item's and unbroken. */
const requireWhole = async (item: SessionItem) => {
  const entries = await whole(item)
  expect(verifyJournal(entries, { head: item.journal_head, document: item.document })).toMatchObject({
    ok: true,
  })
  expect(await pieces.platform.journals.after(item, -1, 10_000)).toEqual(entries)
}

const segmentLengths = async (item: SessionItem): Promise<number[]> => {
  const lengths: number[] = []
  for (let next = 0; ; ) {
    const found = await pieces.platform.journals.segment(item, next)
    if (!found) return lengths
    lengths.push(found.length)
    next += found.length
  }
}

describe('draining a session’s outbox', () => {
  it('writes the same journal whether it is done once, twice or from five places at once', async () => {
    const item = grown(newSession(), 7)
    const { journals } = pieces.platform
    await Promise.all(Array.from({ length: 5 }, () => journals.drain(item)))
    await journals.drain(item)
    expect(await segmentLengths(item)).toEqual([2, 7])
    await requireWhole(item)
  })

  it('removes from the item what has reached the journal, and nothing else', async () => {
    const item = grown(newSession(), 3)
    await pieces.platform.journals.drain(item)
    const after = grown(item, 2, item.journal_head.sequence)
    expect(after.outbox.map(({ sequence }) => sequence)).toEqual([5, 6])
    await pieces.platform.journals.drain(after)
    expect(grown(after, 0, after.journal_head.sequence).outbox).toEqual([])
    await requireWhole(after)
  })

  it('makes the same segments whoever drains first, the one who knew less or the one who knew more', async () => {
    for (const order of ['early', 'late'] as const) {
      const early = grown(newSession(), 2)
      const late = grown(early, 3)
      const [first, second] = order === 'early' ? [early, late] : [late, early]
      await pieces.platform.journals.drain(first)
      await pieces.platform.journals.drain(second)
      expect(await segmentLengths(late)).toEqual([2, 2, 3])
      // The one who knew less is the one who notes it.
      const next = grown(late, 2, early.journal_head.sequence)
      expect(next.outbox.map(({ segment }) => segment)).toEqual([4, 4, 4, 7, 7])
      await pieces.platform.journals.drain(next)
      await requireWhole(next)
    }
  })

  it('drops a segment from the item as a whole, also when only a part of it is known to be there', async () => {
    const item = grown(newSession(), 3)
    await pieces.platform.journals.drain(item)
    const next = grown(item, 1, 3)
    expect(next.outbox.map(({ sequence }) => sequence)).toEqual([5])
    await pieces.platform.journals.drain(next)
    await requireWhole(next)
  })

  it('leaves one whole journal however drains, notes and new entries interleave', async () => {
    const step = fc.record({
      ...{ grow: fc.nat({ max: 3 }), drain: fc.nat({ max: 4 }), note: fc.boolean() },
      // How much less than what was drained is known by who notes it, as a step of the machine does.
      knows: fc.nat({ max: 6 }),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 10 }), async (steps) => {
        let item = newSession()
        const known = [item]
        for (const { grow, drain, note, knows } of steps) {
          item = grown(item, grow)
          known.push(item)
          // Somebody who read the item some writes ago drains what it held then.
          const stale = known.at(-1 - (drain % known.length)) ?? item
          await pieces.platform.journals.drain(stale)
          if (note) {
            item = grown(item, 0, Math.max(-1, stale.journal_head.sequence - knows))
            known.push(item)
          }
        }
        await pieces.platform.journals.drain(item)
        await requireWhole(item)
      }),
      { numRuns: 60 },
    )
  }, 60_000)

  it('refuses to go on over foreign bytes', async () => {
    const item = newSession()
    const other = grown(newSession(), 0)
    await pieces.platform.journals.drain({ ...other, id: item.id })
    await expect(pieces.platform.journals.drain(item)).rejects.toMatchObject({ code: 'journal_damaged' })
    const empty = newSession()
    await pieces.platform.blobs.put(objectKey.segment(empty.team, empty.id, 0), '')
    await expect(pieces.platform.journals.drain(empty)).rejects.toMatchObject({ code: 'journal_damaged' })
  })

  it('names a segment that holds no entries, instead of passing over it', async () => {
    const item = newSession()
    await pieces.platform.blobs.put(objectKey.segment(item.team, item.id, 0), '{"half": ')
    await expect(pieces.platform.journals.segment(item, 0)).rejects.toMatchObject({ code: 'journal_damaged' })
  })

  it('cuts a long outbox into segments of at most a batch', async () => {
    const item = grown(newSession(), 2 * limits.journalBatch.entries + 5)
    await pieces.platform.journals.drain(item)
    const { entries } = limits.journalBatch
    expect(await segmentLengths(item)).toEqual([2, entries, entries, 5])
    await requireWhole(item)
  })
})

describe('reading a journal', () => {
  it('finds everything after any cursor, whatever the segments and the size of the page', async () => {
    let item = newSession()
    for (const count of [3, 1, 7, 1, 1, 12, 2]) {
      await pieces.platform.journals.drain(item)
      item = grown(item, count, item.journal_head.sequence)
    }
    await pieces.platform.journals.drain(item)
    const all = await whole(item)
    expect(await segmentLengths(item)).toEqual([2, 3, 1, 7, 1, 1, 12, 2])
    for (let cursor = -1; cursor <= item.journal_head.sequence; cursor++) {
      expect(await pieces.platform.journals.after(item, cursor, 1000)).toEqual(all.slice(cursor + 1))
    }
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 9 }),
        fc.integer({ min: -1, max: 28 }),
        async (limit, from) => {
          const seen: Entry[] = []
          for (let cursor = from; ; ) {
            const page = await pieces.platform.journals.after(item, cursor, limit)
            expect(page.length).toBeLessThanOrEqual(limit)
            if (page.length === 0) break
            seen.push(...page)
            cursor = page.at(-1)?.sequence ?? cursor
          }
          expect(seen).toEqual(all.slice(from + 1))
        },
      ),
      { numRuns: 20 },
    )
  }, 60_000)

  it('finds nothing for a session without a journal, and nothing behind the end', async () => {
    const id = { team: 'team', id: newId('ses') }
    expect(await pieces.platform.journals.after(id, -1, 10)).toEqual([])
    expect(await pieces.platform.journals.segment(id, 0)).toBeNull()
    const item = newSession()
    await pieces.platform.journals.drain(item)
    expect(await pieces.platform.journals.after(item, item.journal_head.sequence, 10)).toEqual([])
    expect(await pieces.platform.journals.after(item, 500, 10)).toEqual([])
  })

  it('keeps the journals of sessions whose ids begin alike apart', async () => {
    const item = newSession()
    await pieces.platform.journals.drain(item)
    expect(
      await pieces.platform.journals.after({ team: item.team, id: item.id.slice(0, -1) }, -1, 9),
    ).toEqual([])
    expect(await pieces.platform.journals.after({ team: 'tea', id: item.id }, -1, 9)).toEqual([])
  })
})

describe('blobs', () => {
  it('lets one of ten creators of a key win, and keeps the bytes of that one', async () => {
    const { blobs } = pieces.platform
    const won = await Promise.all(
      Array.from({ length: 10 }, (_, n) => blobs.create('race', `body ${n}`, 'text/plain')),
    )
    expect(won.filter(Boolean)).toHaveLength(1)
    expect(await blobs.get('race')).toBe(`body ${won.indexOf(true)}`)
  })

  it('says of what is not there that it is not', async () => {
    const { blobs } = pieces.platform
    expect([await blobs.get('none'), await blobs.stream('none'), await blobs.exists('none')]).toEqual([
      null,
      null,
      false,
    ])
  })

  it('signs addresses that a plain client can write to and read from', async () => {
    const { blobs } = pieces.platform
    const put = await fetch(await blobs.uploadUrl('signed/ключ 🙂'), { method: 'PUT', body: 'zażółć' })
    expect(put.status).toBe(200)
    expect(await (await fetch(await blobs.downloadUrl('signed/ключ 🙂'))).text()).toBe('zażółć')
  })
})
