import { hash } from 'node:crypto'
import { linesOf } from '../../journal/lines.ts'
import type { Seal } from '../../session/item.ts'
import { decompressFrame, type Frame, readSeekTable, seekTableBytes } from '../seekable.ts'

const countBytes = 9

const framesOf = (object: Buffer): Frame[] | null => {
  if (object.length < seekTableBytes(1)) return null
  const table = seekTableBytes(object.readUInt32LE(object.length - countBytes))
  return table > object.length ? null : readSeekTable(object.subarray(object.length - table))
}

const linesIn = async (object: Buffer, from: number, frame: Frame): Promise<number | null> => {
  const text = await decompressFrame(object.subarray(from, from + frame.compressed), frame)
  return (text && linesOf(text)?.length) ?? null
}

/**
 * The seal of an object of this name, as a row would hold it; null for bytes that are no sealed journal or not those of
 * its name. `time` is when it counts as sealed.
 */
export const foundSeal = async (sha256: string, object: Buffer, time: string): Promise<Seal | null> => {
  if (hash('sha256', object) !== sha256) return null
  const frames = framesOf(object)
  const [first] = frames ?? []
  const last = frames?.at(-1)
  if (!frames || !first || !last) return null
  const end = frames.slice(0, -1).reduce((sum, { compressed }) => sum + compressed, 0)
  const [frame_entries, rest] = await Promise.all([linesIn(object, 0, first), linesIn(object, end, last)])
  if (frame_entries === null || rest === null) return null
  const through = (frames.length - 1) * frame_entries + rest - 1
  return { sha256, bytes: object.length, through, frame_entries, sealed_at: time, cleared: false }
}
