import { createHash } from 'node:crypto'
import { GatehouseError } from '../errors.ts'
import { emptyHead, type Head } from '../journal/entry.ts'
import { entriesOf, toBytes } from '../journal/lines.ts'
import { limits } from '../limits.ts'
import { isUnsealed } from '../session/due.ts'
import type { Seal, SessionItem } from '../session/item.ts'
import { carryOut } from './effects.ts'
import { objectKey } from './keys.ts'
import type { Platform } from './platform.ts'
import { compressFrame, type Frame, writeSeekTable } from './seekable.ts'

type Id = { team: string; id: string }
/** See `limits.seal`. */
type Bounds = { frameEntries: number; bytes: number; entries: number; segments: number }

const actor = { kind: 'system' as const, id: 'sealing' }

/** Takes lines in, frame by frame; what it holds is the compressed object and less than a frame. */
const createSealer = (frameEntries: number) => {
  const parts: Buffer[] = []
  const frames: Frame[] = []
  let open: string[] = []
  let bytes = 0

  const close = async (lines: readonly string[]): Promise<void> => {
    const text = toBytes(lines)
    const part = await compressFrame(text)
    parts.push(part)
    frames.push({ compressed: part.length, decompressed: text.length })
    bytes += part.length
  }

  return {
    bytes: (): number => bytes,
    take: async (lines: readonly string[]): Promise<void> => {
      open.push(...lines)
      while (open.length >= frameEntries) {
        await close(open.slice(0, frameEntries))
        open = open.slice(frameEntries)
      }
    },
    end: async (): Promise<Buffer> => {
      if (open.length > 0) await close(open)
      return Buffer.concat([...parts, writeSeekTable(frames)])
    },
  }
}

/** The head after some lines, each of which has to follow the one before it. Throws `journal_damaged`. */
const chained = (id: string, head: Head, lines: readonly string[]): Head =>
  entriesOf(id, head.sequence + 1, lines).reduce((before, { sequence, previous_hash, hash }) => {
    if (previous_hash === before.hash) return { sequence, hash }
    throw new GatehouseError(
      'journal_damaged',
      `entry ${sequence} of ${id} does not follow the one before it`,
    )
  }, head)

/**
 * The journal up to the item's head as one object, and its last sequence; null when a segment reaches beyond the head,
 * so that the item is not the current one. Ends at the end of a segment; before the head only where the bounds are
 * reached. Throws `journal_damaged`: what can't be proven is not sealed.
 */
const build = async (
  { journals }: Pick<Platform, 'journals'>,
  item: SessionItem,
  bounds: Bounds,
): Promise<{ object: Buffer; through: number } | null> => {
  const sealer = createSealer(bounds.frameEntries)
  let head = emptyHead
  let segments = 0
  for await (const lines of journals.segments(item)) {
    head = chained(item.id, head, lines)
    if (head.sequence > item.journal_head.sequence) return null
    await sealer.take(lines)
    segments += 1
    if (head.sequence === item.journal_head.sequence) break
    const isFull = [
      segments >= bounds.segments,
      head.sequence + 1 >= bounds.entries,
      sealer.bytes() >= bounds.bytes,
    ]
    if (isFull.includes(true)) return { object: await sealer.end(), through: head.sequence }
  }
  if (head.sequence !== item.journal_head.sequence || head.hash !== item.journal_head.hash)
    throw new GatehouseError(
      'journal_damaged',
      `the journal of ${item.id} ends at ${head.sequence}, its head is ${item.journal_head.sequence}`,
    )
  return { object: await sealer.end(), through: head.sequence }
}

/** Writes the sealed object of the journal in the segments and names it on the item, in the place of the seal there. */
const writeSeal = async (platform: Platform, item: SessionItem, bounds: Bounds): Promise<SessionItem> => {
  const before = item.runtime.sealed
  const built = await build(platform, { ...item, runtime: { ...item.runtime, sealed: null } }, bounds)
  if (!built) return item
  const sha256 = createHash('sha256').update(built.object).digest('hex')
  await platform.blobs.put(objectKey.sealed(item.team, item.id, sha256), built.object, 'application/zstd')
  const sealed: Seal = {
    ...{ sha256, bytes: built.object.length, through: built.through, frame_entries: bounds.frameEntries },
    ...{ sealed_at: new Date(platform.clock()).toISOString(), cleared: false },
  }
  return platform.sessions.update(item, ({ runtime: now }) =>
    now.sealed?.sha256 === before?.sha256 && now.sealed?.cleared !== true
      ? { actor, facts: [], runtime: { sealed } }
      : null,
  )
}

/**
 * Seals the journal of a settled session: writes it as one object, and then names that on the item, from where on it is
 * the journal; its segments stay until they are cleared. The object is named by its bytes, so that a repeat after a
 * crash and a second sealer write the same, and nobody reads one that no item names. Does nothing for a session that is
 * not settled, that is sealed, or that is written to right now. Throws `journal_damaged`.
 */
export const seal = async (
  platform: Platform,
  id: Id,
  bounds: Bounds = limits.seal,
): Promise<SessionItem> => {
  const item = await carryOut(platform, await platform.sessions.require(id))
  return isUnsealed(item.runtime) && item.outbox.length === 0 ? writeSeal(platform, item, bounds) : item
}

/**
 * Removes the segments that a seal covers, once the sealed object was proven; harmless to repeat. Where the object is
 * not what was sealed, the journal is sealed anew from its segments instead. Throws `journal_damaged` when these are
 * damaged too.
 */
export const clearSealed = async (platform: Platform, id: Id): Promise<SessionItem> => {
  const item = await carryOut(platform, await platform.sessions.require(id))
  const { sealed } = item.runtime
  if (sealed === null || sealed.cleared) return item
  if (!(await platform.journals.isSealWhole(item, sealed))) return writeSeal(platform, item, limits.seal)
  await platform.journals.clear(item, sealed)
  return platform.sessions.update(item, ({ runtime: now }) =>
    now.sealed?.sha256 === sealed.sha256 && !now.sealed.cleared
      ? { actor, facts: [], runtime: { sealed: { ...sealed, cleared: true } } }
      : null,
  )
}
