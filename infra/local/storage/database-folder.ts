import { readdir } from 'node:fs/promises'
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
