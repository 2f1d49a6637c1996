import { GatehouseError, isError } from '../errors.ts'
import type { SessionItem } from '../session/item.ts'
import type { Platform } from './platform.ts'
import { dropUpload, type Upload } from './uploads.ts'

/** The session that an import made before. Throws `idempotency_mismatch` when something else was asked for then. */
const madeBefore = async (platform: Platform, { team, import_id }: Upload, request: string) => {
  const noted = await platform.imports.noted(team, import_id)
  if (!noted) return null
  if (noted.request !== request)
    throw new GatehouseError('idempotency_mismatch', `import ${import_id} was made with another request`)
  return platform.sessions.require({ team, id: noted.session_id })
}

/**
 * Runs an import once: a repeat gets the session that the first made. `request` names what is asked. An upload that was
 * imported, or that never can be, is removed.
 */
export const runImport = async (
  platform: Platform,
  upload: Upload,
  request: string,
  run: () => Promise<SessionItem>,
): Promise<SessionItem> => {
  const before = await madeBefore(platform, upload, request)
  if (before) return before
  try {
    const item = await run()
    await platform.imports.note(upload.team, upload.import_id, item.id, request)
    await dropUpload(platform, upload)
    return item
  } catch (error) {
    // A repeat that ran beside this one may have made it meanwhile, and removed the upload then.
    const made = await madeBefore(platform, upload, request)
    if (made) return made
    if (isError(error, 'invalid_archive', 'invalid_records', 'already_exists'))
      await dropUpload(platform, upload)
    throw error
  }
}
