import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { isDiskFull, noRoom } from './room.ts'

const code = (error: unknown): string => (error instanceof Error && 'code' in error ? String(error.code) : '')

const causes = function* (error: unknown): Generator<Error> {
  for (let at = error; at instanceof Error; at = at.cause) yield at
}

/** Why the database's folder could not be opened, in words that are true of this error. */
export const openFault = (path: string, cause: unknown): Error => {
  const all = [...causes(cause)]
  const why = isDiskFull(cause)
    ? `can’t be opened. ${noRoom}`
    : all.some((one) => code(one) === 'LEVEL_LOCKED')
      ? 'is held by another process'
      : `can’t be opened: ${all.at(-1)?.message ?? cause}`
  return new Error(`the DynamoDB folder ${path} ${why}`, { cause })
}

/**
 * Throws when a home has objects of sessions but no database that knows them: a new one would take them for left over.
 * To be called before anything is written.
 */
export const requireDatabaseOfObjects = async (database: string, objects: string): Promise<void> => {
  const [files, kept] = await Promise.all(
    [database, objects].map((folder) =>
      readdir(folder).catch((error: unknown): string[] => {
        if (code(error) === 'ENOENT') return []
        throw error
      }),
    ),
  )
  if (kept?.length && !files?.includes('CURRENT'))
    throw new Error(
      `${objects} holds sessions, but the database ${join(database, 'CURRENT')} that knows them is missing. ` +
        'Nothing was changed; put the folder back from a copy.',
    )
}

/**
 * Throws when the folder holds tables but not the file that says which: LevelDB would begin a new database there and
 * delete the files of the old one.
 */
export const requireWholeFolder = async (path: string): Promise<void> => {
  const names = await readdir(path)
  const tables = names.filter((name) => /^\d+\.(ldb|sst|log)$|^MANIFEST-/.test(name))
  if (tables.length > 0 && !names.includes('CURRENT'))
    throw new Error(
      `the DynamoDB folder ${path} is damaged: it holds ${tables.length} files of a database, but the file CURRENT is missing. ` +
        'Nothing was changed; put the file, or the whole folder, back from a copy.',
    )
}
