import { GatehouseError } from '../errors.ts'
import { objectKey } from './keys.ts'
import type { Platform } from './platform.ts'

/** What somebody of a team uploaded to be imported. */
export type Upload = { team: string; import_id: string }

type Blobs = Pick<Platform, 'blobs'>

/** The bytes of an upload. Throws `not_found` when there is none. */
export const openUpload = async (
  { blobs }: Blobs,
  { team, import_id }: Upload,
): Promise<ReadableStream<Uint8Array>> => {
  const stream = await blobs.stream(objectKey.upload(team, import_id))
  if (stream) return stream
  throw new GatehouseError(
    'not_found',
    `nothing is uploaded for import ${import_id}; what was refused or left for too long is removed`,
  )
}

/** An upload is done with: it was imported, or it never can be. */
export const dropUpload = ({ blobs }: Blobs, { team, import_id }: Upload): Promise<void> =>
  blobs.remove([objectKey.upload(team, import_id)])
