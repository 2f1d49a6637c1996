import { setTimeout as sleep } from 'node:timers/promises'
import { GatehouseError } from '../errors.ts'
import { type Segment, segmentText } from '../journal/segments.ts'
import type { Reservation } from './imports.ts'
import { objectKey } from './keys.ts'
import type { Platform } from './platform.ts'

/** An object of a session that is being imported. */
export type ImportedObject = { key: string; body: string | Uint8Array; type: string }

export const segmentObject = (id: { team: string; id: string }, segment: Segment): ImportedObject => ({
  key: objectKey.segment(id.team, id.id, segment.first),
  body: segmentText(segment),
  type: 'application/x-ndjson',
})

type Parts = Pick<Platform, 'blobs' | 'clock'>

const write = async ({ blobs, clock }: Parts, held: Reservation, object: ImportedObject): Promise<void> => {
  for (;;) {
    if (clock() >= held.until)
      throw new GatehouseError('unavailable', 'the import took too long; it is removed in a while')
    if (await blobs.create(object.key, object.body, object.type)) return
    const there = await blobs.bytes(object.key)
    // Its creator is not done yet.
    if (there === null) {
      await sleep(20)
      continue
    }
    if (Buffer.compare(there, Buffer.from(object.body)) === 0) return
    throw new GatehouseError('conflict', `other bytes are left at ${object.key}; they are removed in a while`)
  }
}

/** Writes the objects of a session whose id is held. What a repeat finds written has to be the very same. */
export const writeObjects = async (
  parts: Parts,
  held: Reservation,
  objects: AsyncIterable<ImportedObject> | Iterable<ImportedObject>,
): Promise<void> => {
  for await (const object of objects) await write(parts, held, object)
}
