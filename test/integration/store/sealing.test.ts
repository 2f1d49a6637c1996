import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Entry, fromLine } from '../../../lib/journal/entry.ts'
import { limits } from '../../../lib/limits.ts'
import type { SessionItem } from '../../../lib/session/item.ts'
import { transition } from '../../../lib/store/effects.ts'
import type { Source } from '../../../lib/store/journals.ts'
import { objectKey } from '../../../lib/store/keys.ts'
import { proveJournal } from '../../../lib/store/proof.ts'
import { removeSession } from '../../../lib/store/retention.ts'
import { clearSealed, seal } from '../../../lib/store/sealing.ts'
import { temporaryFolder } from '../../repositories.ts'
import { type Pieces, startPieces } from '../../support/pieces.ts'
import { epochMs, system } from '../../support/sessions.ts'
import { settledWith } from '../../support/settled.ts'
import { decompressAll } from '../../support/zstandard.ts'

let pieces: Pieces
const reads: string[] = []
beforeAll(async () => {
  pieces = await startPieces(temporaryFolder(), { clock: () => epochMs })
  pieces.clients.s3.middlewareStack.add(
    (next, { commandName }) =>
      (args) => {
        if (/^(Get|List|Head)/.test(commandName ?? '')) reads.push(commandName ?? '')
        return next(args)
      },
    { step: 'initialize', name: 'reads' },
  )
}, 60_000)
afterAll(() => pieces.close())

/** Frames so small that a short journal has many. */
const small = { ...limits.seal, frameEntries: 4 }
const sizes = [3, 1, 7, 1, 1, 12, 2]

const linesOf = async (source: Source): Promise<string[]> => {
  const all: string[] = []
  for await (const lines of pieces.platform.journals.segments(source)) all.push(...lines)
  return all
}
const keysOf = async ({ team, id }: SessionItem): Promise<string[]> => {
  const keys: string[] = []
  for await (const key of pieces.platform.blobs.list(objectKey.session(team, id))) keys.push(key)
  return keys.map((key) => key.slice(objectKey.session(team, id).length))
}
const sealedKey = ({ team, id, runtime }: SessionItem): string => {
  if (!runtime.sealed) throw new Error('not sealed')
  return objectKey.sealed(team, id, runtime.sealed.sha256)
}
const told = (item: SessionItem, message: string): Promise<SessionItem> =>
  transition(pieces.platform, item, () => ({
    actor: system,
    facts: [{ type: 'error', data: { message } }],
  }))

/** What a reader can ask for, from every cursor or from some, is what the entries say. */
const requireReads = async (source: Source, entries: readonly Entry[], every = 7): Promise<void> => {
  const { journals } = pieces.platform
  expect((await linesOf(source)).map(fromLine)).toEqual(entries)
  for (let cursor = -1; cursor < entries.length + 1; cursor += every) {
    for (const limit of [5, 1000])
      expect(await journals.after(source, cursor, limit)).toEqual(
        entries.slice(cursor + 1, cursor + 1 + limit),
      )
  }
}

/** The journal as one who follows it from an entry on is given it. */
const followed = async (source: Source, from: number): Promise<Entry[]> => {
  const all: Entry[] = []
  for (;;) {
    const found = await pieces.platform.journals.segment(source, from + all.length)
    if (!found) return all
    expect(found.length).toBeGreaterThan(0)
    all.push(...found)
  }
}

describe('a sealed journal', () => {
  it('is read from every cursor as before it was sealed, and while its segments still stand, and after', async () => {
    const item = await settledWith(pieces, sizes)
    const lines = await linesOf(item)
    const entries = lines.map(fromLine)
    await requireReads(item, entries)
    const sealed = await seal(pieces.platform, item, small)
    expect(sealed.runtime.sealed).toMatchObject({ through: item.journal_head.sequence, cleared: false })
    await requireReads(sealed, entries)
    await requireReads(item, entries)
    const cleared = await clearSealed(pieces.platform, item)
    expect(cleared.runtime.sealed).toEqual({ ...sealed.runtime.sealed, cleared: true })
    expect(await keysOf(item)).toEqual([
      sealedKey(cleared).slice(objectKey.session(item.team, item.id).length),
    ])
    await requireReads(cleared, entries, 1)
    for (let from = 0; from < entries.length; from += 5)
      expect(await followed(cleared, from)).toEqual(entries.slice(from))
    expect(await proveJournal(pieces.platform, item)).toMatchObject({ ok: true, entries: entries.length })
  }, 60_000)

  it('is the journal’s lines to any decoder of its format', async () => {
    const item = await settledWith(pieces, sizes)
    const sealed = await seal(pieces.platform, item, small)
    const bytes = await pieces.platform.blobs.bytes(sealedKey(sealed))
    if (!bytes) throw new Error('not there')
    const text = (await linesOf(item)).map((line) => `${line}\n`).join('')
    expect(decompressAll(bytes)).toBe(text)
    expect(bytes.length).toBe(sealed.runtime.sealed?.bytes)
  })

  it('has what came behind the seal in segments, and is read over both', async () => {
    const item = await settledWith(pieces, [9])
    await seal(pieces.platform, item, small)
    for (const message of ['late', 'later']) await told(item, message)
    await clearSealed(pieces.platform, item)
    const late = await told(item, 'latest')
    const entries = (await linesOf(late)).map(fromLine)
    expect(entries.slice(-3).map(({ data }) => data.message)).toEqual(['late', 'later', 'latest'])
    expect(entries).toHaveLength(late.journal_head.sequence + 1)
    await requireReads(late, entries)
    for (const from of [0, 11, 12, 13, 15]) expect(await followed(late, from)).toEqual(entries.slice(from))
    expect(await proveJournal(pieces.platform, item)).toMatchObject({ ok: true })
  })

  it('takes two reads for a page anywhere; in segments it takes a listing and the segments of the page', async () => {
    const { entries: batch } = limits.journalBatch
    const item = await settledWith(pieces, [batch, 1, 1, batch, batch, 3])
    const sealed = await clearSealedAfter(item)
    const { sequence: last } = item.journal_head
    for (let cursor = -1; cursor < last; cursor += 37) {
      reads.length = 0
      await pieces.platform.journals.after(sealed, cursor, Math.min(100, last - cursor))
      expect(reads).toEqual(['GetObjectCommand', 'GetObjectCommand'])
    }
    const open = await settledWith(pieces, [batch, batch, batch])
    const starts = [0, 2, 4, 4 + batch, 4 + 2 * batch]
    for (let cursor = -1; cursor < open.journal_head.sequence; cursor += 37) {
      reads.length = 0
      const page = await pieces.platform.journals.after(open, cursor, 100)
      const last = page.at(-1)?.sequence ?? -1
      const touched = starts.filter((start, n) => start <= last && (starts[n + 1] ?? last + 1) > cursor + 1)
      expect(reads).toEqual(['ListObjectsV2Command', ...touched.map(() => 'GetObjectCommand')])
    }
    // Both forms in one page.
    const late = await told(item, 'late')
    reads.length = 0
    expect(await pieces.platform.journals.after(late, last - 1, 1)).toHaveLength(1)
    expect(await pieces.platform.journals.after(late, last, 1)).toHaveLength(1)
    expect(reads).toHaveLength(4)
  }, 60_000)

  const clearSealedAfter = async (item: SessionItem): Promise<SessionItem> => {
    await seal(pieces.platform, item)
    return clearSealed(pieces.platform, item)
  }

  it('is read to its end by who began before it was sealed', async () => {
    const item = await settledWith(pieces, sizes)
    const entries = (await linesOf(item)).map(fromLine)
    const reader = pieces.platform.journals.segments(item)
    const seen = (await reader.next()).value ?? []
    await seal(pieces.platform, item, small)
    const late = await told(item, 'late')
    await clearSealed(pieces.platform, item)
    for await (const lines of reader) seen.push(...lines)
    // What was asked for ahead of its turn may have come from a segment; what was not comes from the seal.
    expect(seen.map(fromLine).slice(0, entries.length)).toEqual(entries)

    expect(await linesOf({ team: item.team, id: item.id })).toEqual(await linesOf(late))
    expect(await linesOf(item)).toEqual(await linesOf(late))
    // One who follows it finds nothing more where it was, and goes on where its item says.
    expect(await pieces.platform.journals.segment(item, 4)).toBeNull()
    expect(await pieces.platform.journals.after(item, 3, 10)).toEqual([])
    expect(await followed(late, 4)).toEqual((await linesOf(late)).map(fromLine).slice(4))
  })

  it('goes with all that belongs to its session', async () => {
    const item = await settledWith(pieces, sizes)
    await seal(pieces.platform, item)
    const late = await told(item, 'late')
    expect((await keysOf(item)).length).toBeGreaterThan(sizes.length)
    expect(await removeSession(pieces.platform, late)).toBe(true)
    expect(await keysOf(item)).toEqual([])
  })
})

describe('sealing', () => {
  it('is the same for five at once, and for who comes again', async () => {
    const item = await settledWith(pieces, sizes)
    const all = await Promise.all(Array.from({ length: 5 }, () => seal(pieces.platform, item, small)))
    const [first] = all
    expect(all.map(({ runtime }) => runtime.sealed)).toEqual(all.map(() => first?.runtime.sealed))
    expect((await seal(pieces.platform, item, small)).revision).toBe(first?.revision)
    expect((await keysOf(item)).filter((key) => key.startsWith('sealed/'))).toHaveLength(1)
    const cleared = await Promise.all([1, 2, 3].map(() => clearSealed(pieces.platform, item)))
    expect(new Set(cleared.map(({ revision }) => revision)).size).toBe(1)
    await requireReads(cleared[0] ?? item, (await linesOf(cleared[0] ?? item)).map(fromLine))
  })

  it('does nothing to a session that is not settled', async () => {
    const item = await settledWith(pieces, sizes)
    const open = await pieces.platform.sessions.update(item, () => ({
      ...{ actor: system, facts: [], runtime: { settled: false } },
    }))
    expect(await seal(pieces.platform, item)).toEqual(open)
    expect((await keysOf(item)).filter((key) => key.startsWith('sealed/'))).toEqual([])
  })

  it('writes first what was decided and is not in the journal yet', async () => {
    const item = await settledWith(pieces, [5])
    const { sessions } = pieces.platform
    const decided = await sessions.update(item, () => ({
      actor: system,
      facts: [{ type: 'error', data: { message: 'undrained' } }],
    }))
    const sealed = await seal(pieces.platform, item)
    expect(sealed.runtime.sealed?.through).toBe(decided.journal_head.sequence)
    expect((await linesOf(sealed)).at(-1)).toBe(decided.outbox.at(-1)?.line)
  })

  it('leaves a journal that does not prove as it is, and says why', async () => {
    const item = await settledWith(pieces, sizes)
    const key = objectKey.segment(item.team, item.id, 4)
    const text = (await pieces.platform.blobs.get(key)) ?? ''
    const before = await keysOf(item)
    for (const damage of [text.replace('message 1', 'message 2'), text.slice(0, -1), '']) {
      await pieces.platform.blobs.put(key, damage)
      await expect(seal(pieces.platform, item)).rejects.toMatchObject({ code: 'journal_damaged' })
    }
    await pieces.platform.blobs.remove([key])
    await expect(seal(pieces.platform, item)).rejects.toMatchObject({ code: 'journal_damaged' })
    await pieces.platform.blobs.put(key, text)
    expect(await keysOf(item)).toEqual(before)
    expect((await pieces.platform.sessions.require(item)).runtime.sealed).toBeNull()
    expect((await seal(pieces.platform, item)).runtime.sealed).not.toBeNull()
  })

  it.each([
    ['segments', { ...small, segments: 3 }],
    ['bytes', { ...small, bytes: 600 }],
    ['entries', { ...small, entries: 6 }],
  ])(
    'takes in a first part only of a journal with more than so many %s, and leaves the rest',
    async (_, bounds) => {
      const item = await settledWith(pieces, sizes)
      const entries = (await linesOf(item)).map(fromLine)
      const sealed = await seal(pieces.platform, item, bounds)
      const through = sealed.runtime.sealed?.through ?? 0
      expect(through).toBeGreaterThan(0)
      expect(through).toBeLessThan(item.journal_head.sequence)
      const cleared = await clearSealed(pieces.platform, item)
      await requireReads(cleared, entries)
      expect(await proveJournal(pieces.platform, item)).toMatchObject({ ok: true })
    },
  )

  it('is done anew from the segments when the object is not what was sealed', async () => {
    const item = await settledWith(pieces, sizes)
    const sealed = await seal(pieces.platform, item)
    const entries = (await linesOf(sealed)).map(fromLine)
    const bytes = await pieces.platform.blobs.bytes(sealedKey(sealed))
    await pieces.platform.blobs.put(sealedKey(sealed), Buffer.from(bytes ?? '').fill(0, 10, 11))
    expect(await proveJournal(pieces.platform, item)).toMatchObject({ ok: false })
    const again = await clearSealed(pieces.platform, item)
    expect(again.runtime.sealed?.cleared).toBe(false)
    expect(await proveJournal(pieces.platform, item)).toMatchObject({ ok: true })
    await requireReads(await clearSealed(pieces.platform, item), entries)
  })

  it('keeps a damaged object, and says so, when its segments are gone or damaged too', async () => {
    const item = await settledWith(pieces, sizes)
    const sealed = await seal(pieces.platform, item)
    await pieces.platform.blobs.put(sealedKey(sealed), 'damaged')
    await pieces.platform.blobs.remove([objectKey.segment(item.team, item.id, 0)])
    await expect(clearSealed(pieces.platform, item)).rejects.toMatchObject({ code: 'journal_damaged' })
    expect(await pieces.platform.sessions.require(item)).toEqual(sealed)
  })

  it('is not undone by one who drains an outbox of long ago', async () => {
    const item = await settledWith(pieces, sizes)
    const lines = await linesOf(item)
    await seal(pieces.platform, item, small)
    const cleared = await clearSealed(pieces.platform, item)
    const outbox = lines.slice(4, 9).map((line, at) => ({ sequence: 4 + at, segment: at < 3 ? 4 : 7, line }))
    await pieces.platform.journals.drain({ ...item, outbox })
    expect((await keysOf(item)).filter((key) => key.startsWith('journal/'))).toHaveLength(2)
    await requireReads(cleared, lines.map(fromLine))
    const late = await told(item, 'late')
    expect(await linesOf(late)).toHaveLength(lines.length + 1)
    expect(await proveJournal(pieces.platform, item)).toMatchObject({ ok: true })
  })
})
