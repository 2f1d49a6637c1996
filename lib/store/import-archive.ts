import { type Checked, checkArchive, writtenAs } from '../archive/check.ts'
import { ArchiveError } from '../archive/error.ts'
import { partsOf } from '../archive/parts.ts'
import { GatehouseError } from '../errors.ts'
import { endedItem } from '../session/imported.ts'
import type { SessionItem } from '../session/item.ts'
import { type ImportedObject, segmentObject, writeObjects } from './imported-objects.ts'
import { objectKey } from './keys.ts'
import type { Platform } from './platform.ts'
import { openUpload, type Upload } from './uploads.ts'

const refused = (error: unknown): unknown =>
  error instanceof ArchiveError
    ? new GatehouseError('invalid_archive', `the archive can’t be imported: ${error.message}`, {
        cause: error,
      })
    : error

/** The objects of an archive as they were checked; the upload is read a second time, and might be another by now. */
async function* objectsOf(
  source: ReadableStream<Uint8Array>,
  id: { team: string; id: string },
  { written }: Checked,
): AsyncGenerator<ImportedObject> {
  for await (const part of partsOf(source)) {
    const { name, sha256 } = writtenAs(part) ?? {}
    if (name === undefined) continue
    if (written.get(name) !== sha256)
      throw new GatehouseError('conflict', 'the upload was replaced while it was imported')
    if (part.kind === 'segment') yield segmentObject(id, part.segment)
    if (part.kind !== 'file') continue
    const keyOf = part.folder === 'bundles' ? objectKey.bundle : objectKey.artifact
    yield { key: keyOf(id.team, id.id, part.name), body: part.body, type: 'application/octet-stream' }
  }
}

/**
 * Makes a session of an uploaded archive, with everything as it was at its source: checked and replayed whole, then
 * written, then there by one put. Never merged with anything and never renumbered. Throws `not_found` without an upload,
 * `invalid_archive` (nothing is written then), `already_exists`, `conflict`.
 */
export const importArchive = async (platform: Platform, upload: Upload): Promise<SessionItem> => {
  try {
    const checked = await checkArchive(await openUpload(platform, upload), upload.team)
    const id = { team: upload.team, id: checked.document.id }
    const held = await platform.imports.reserve(id, upload.import_id, checked.fingerprint)
    if ('document' in held) return held
    await writeObjects(platform, held, objectsOf(await openUpload(platform, upload), id, checked))
    const time = new Date(platform.clock()).toISOString()
    const item = endedItem(id, checked, checked.lifecycle_records, upload.import_id, time)
    return await platform.imports.create(item, held)
  } catch (error) {
    throw refused(error)
  }
}
