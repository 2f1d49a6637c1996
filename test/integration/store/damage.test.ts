import { PutCommand } from '@aws-sdk/lib-dynamodb'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Entry } from '../../../lib/journal/entry.ts'
import { limits } from '../../../lib/limits.ts'
import { changeItem, type SessionItem } from '../../../lib/session/item.ts'
import type { Source } from '../../../lib/store/journals.ts'
import { objectKey } from '../../../lib/store/keys.ts'
import { proveJournal } from '../../../lib/store/proof.ts'
import { clearSealed, seal } from '../../../lib/store/sealing.ts'
import { seekTableBytes } from '../../../lib/store/seekable.ts'
import { sessionPut } from '../../../lib/store/sessions.ts'
import { temporaryFolder } from '../../repositories.ts'
import { type Pieces, startPieces } from '../../support/pieces.ts'
import { at, epochMs, system } from '../../support/sessions.ts'
import { settledWith } from '../../support/settled.ts'

let pieces: Pieces
beforeAll(async () => {
  pieces = await startPieces(temporaryFolder(), { clock: () => epochMs })
}, 60_000)
afterAll(() => pieces.close())

const frameEntries = 4
const message = 'zażółć 🙂 \ufffd and more of it'

/** A settled session with an entry whose data is an artifact, in its first segments. */
const withArtifact = async (): Promise<{ item: SessionItem; artifact: string }> => {
  const { platform, clients, settings } = pieces
  const before = await settledWith(pieces, [3, 1, 6])
  const data_ref = await platform.payloads.store(before, { message })
  const facts = [{ type: 'error' as const, data: { message }, context: { data_ref } }]
  const told = changeItem(before, { actor: system, facts }, at(1000))
  await platform.journals.drain(told)
  const drained = told.journal_head.sequence
  const item = changeItem(told, { actor: system, facts: [], drained }, at(1000))
  await clients.dynamo.send(new PutCommand(sessionPut(settings.table, item, before.revision)))
  return { item, artifact: objectKey.artifact(item.team, item.id, data_ref.artifact) }
}

const bytesOf = async (key: string): Promise<Buffer> => {
  const bytes = await pieces.platform.blobs.bytes(key)
  if (!bytes) throw new Error(`${key} is not there`)
  return bytes
}

/** The object with one byte changed, while something is done. */
const damaged = async (key: string, bytes: Buffer, work: () => Promise<void>): Promise<void> => {
  const before = await bytesOf(key)
  await pieces.platform.blobs.put(key, bytes)
  try {
    await work()
  } finally {
    await pieces.platform.blobs.put(key, before)
  }
}

const changed = (bytes: Buffer, place: number, by: number): Buffer => {
  const other = Buffer.from(bytes)
  other.writeUInt8(other.readUInt8(place) ^ by, place)
  return other
}

/** A reader is given the entries that were written, or is told that they are damaged. */
const requireHonest = async (source: Source, entries: readonly Entry[], cursor: number): Promise<void> => {
  const { journals } = pieces.platform
  const answers = await Promise.allSettled([
    journals.after(source, cursor, 3),
    journals.segment(source, cursor + 1).then((found) => found?.slice(0, 3) ?? []),
  ])
  for (const answer of answers) {
    if (answer.status === 'rejected') expect(answer.reason).toMatchObject({ code: 'journal_damaged' })
    else expect(entries.slice(cursor + 1, cursor + 4)).toEqual(expect.arrayContaining(answer.value))
  }
}

const requireFound = async (item: SessionItem): Promise<void> => {
  const finding = await proveJournal(pieces.platform, item)
  expect(finding.ok).toBe(false)
  expect(finding.problem?.message).toBeTruthy()
}

const entriesOf = async (source: Source): Promise<Entry[]> => pieces.platform.journals.after(source, -1, 1000)

const flip = fc.record({
  place: fc.nat(),
  by: fc.integer({ min: 1, max: 255 }),
  which: fc.nat(),
  cursor: fc.nat({ max: 12 }),
})

describe('one changed byte', () => {
  it('in a segment or in the data of an entry is found, and never read as something else', async () => {
    const { item, artifact } = await withArtifact()
    const entries = await entriesOf(item)
    const keys = [0, 2, 4, 7, 8, 14].map((first) => objectKey.segment(item.team, item.id, first))
    expect(await proveJournal(pieces.platform, item)).toMatchObject({ ok: true, entries: entries.length })
    await fc.assert(
      fc.asyncProperty(flip, async ({ place, by, which, cursor }) => {
        const key = [...keys, artifact][which % (keys.length + 1)] ?? artifact
        const bytes = await bytesOf(key)
        await damaged(key, changed(bytes, place % bytes.length, by), async () => {
          await requireFound(item)
          if (key !== artifact) return requireHonest(item, entries, cursor)
          const [referring] = entries.slice(-1)
          if (!referring) throw new Error('no entries')
          await expect(pieces.platform.payloads.resolve(item, referring)).rejects.toMatchObject({
            code: 'journal_damaged',
          })
        })
      }),
      { numRuns: 60 },
    )
    expect(await proveJournal(pieces.platform, item)).toMatchObject({ ok: true })
  }, 60_000)

  it('in a sealed journal, its seek table and that table’s frame is found, and never read as something else', async () => {
    const { item, artifact } = await withArtifact()
    const entries = await entriesOf(item)
    await seal(pieces.platform, item, { ...limits.seal, frameEntries })
    const sealed = await clearSealed(pieces.platform, item)
    const key = objectKey.sealed(item.team, item.id, sealed.runtime.sealed?.sha256 ?? '')
    const whole = await bytesOf(key)
    const table = seekTableBytes(Math.ceil(entries.length / frameEntries))
    const places = [
      ...Array.from({ length: table }, (_, n) => whole.length - 1 - n),
      // Half of the tries: anywhere else.
      ...Array.from({ length: table }, () => null),
    ]
    expect(await proveJournal(pieces.platform, sealed)).toMatchObject({ ok: true })
    await fc.assert(
      fc.asyncProperty(flip, async ({ place, by, which, cursor }) => {
        const other = changed(whole, places[which % places.length] ?? place % whole.length, by)
        await damaged(key, other, async () => {
          await requireFound(sealed)
          await requireHonest(sealed, entries, cursor)
        })
      }),
      { numRuns: 60 },
    )
    const data = await bytesOf(artifact)
    await damaged(artifact, changed(data, 5, 1), () => requireFound(sealed))
    expect(await proveJournal(pieces.platform, sealed)).toMatchObject({ ok: true })
  }, 60_000)

  it('is found also where the text that is read stays the same', async () => {
    const { item, artifact } = await withArtifact()
    for (const key of [objectKey.segment(item.team, item.id, 4), artifact]) {
      const bytes = await bytesOf(key)
      // The first byte of U+FFFD becomes that of a longer character, which is then incomplete: read as U+FFFD as well.
      const place = bytes.indexOf(Buffer.from('\ufffd'))
      const other = changed(bytes, place, 0xef ^ 0xf0)
      expect(other.toString()).toBe(bytes.toString())
      await damaged(key, other, () => requireFound(item))
    }
  })

  it('is not all: a sealed object that is gone, cut off, or longer, is told as damaged too', async () => {
    const { item } = await withArtifact()
    const { runtime } = await seal(pieces.platform, item)
    const sealed = await clearSealed(pieces.platform, item)
    const key = objectKey.sealed(item.team, item.id, runtime.sealed?.sha256 ?? '')
    const whole = await bytesOf(key)
    const longer = Buffer.concat([whole, Buffer.from('x')])
    for (const bytes of [Buffer.alloc(0), whole.subarray(0, 10), whole.subarray(0, -1), longer])
      await damaged(key, bytes, async () => {
        await requireFound(sealed)
        await expect(pieces.platform.journals.after(sealed, -1, 5)).rejects.toMatchObject({
          code: 'journal_damaged',
        })
      })
    await pieces.platform.blobs.remove([key])
    await requireFound(sealed)
  })
})
