import { chmod, lstat, readdir, rm } from 'node:fs/promises'

const code = (error: unknown): unknown => (error instanceof Error && 'code' in error ? error.code : undefined)

/** What Node says of a file that it may not remove; of an immutable one that it is no folder. */
const denied = new Set<unknown>(['EACCES', 'EPERM', 'ENOTEMPTY', 'ENOTDIR'])

const makeWritable = async (folder: Buffer): Promise<void> => {
  await chmod(folder, 0o700).catch(() => undefined)
  for (const entry of await readdir(folder, { withFileTypes: true, encoding: 'buffer' }))
    if (entry.isDirectory()) await makeWritable(Buffer.concat([folder, Buffer.from('/'), entry.name]))
}

/**
 * Removes a file or a whole folder, also one whose folders were made read-only; links are removed, never followed.
 * Nothing there is success. The path has to be one that this worker made.
 */
export const removeTree = async (path: string | Buffer): Promise<void> => {
  try {
    await rm(path, { recursive: true, force: true })
  } catch (error) {
    if (!denied.has(code(error))) throw error
    const found = await lstat(path)
    if (found.isDirectory()) await makeWritable(Buffer.from(path))
    await rm(path, { recursive: true, force: true, maxRetries: 3 }).catch((cause: unknown) => {
      throw new Error(`${path}: something in it is immutable or another user’s`, { cause })
    })
  }
}
