import { createHash } from 'node:crypto'
import { chmod, lstat, mkdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { lookedUpFrom } from './look-up.ts'
import { makeReadOnly } from './read-only.ts'

/** Where runs can be when the home can't have them; both are for everybody, so the name tells user and home apart. */
const shared = ['/var/tmp', '/tmp']

/** Places for the root of the runs, the best first. */
export const runsCandidates = (home: string, uid: number): string[] => {
  const name = `gatehouse-${uid}-${createHash('sha256').update(home).digest('hex').slice(0, 12)}`
  return [join(home, 'runs'), ...shared.map((folder) => join(folder, name))]
}

/** Makes the folder, or takes it if it is ours alone; its path without links, or a sentence why not. */
const take = async (folder: string, uid: number): Promise<{ path: string } | { why: string }> => {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const found = await lstat(folder)
    if (!found.isDirectory()) return { why: 'it is no folder' }
    if (found.uid !== uid) return { why: 'it belongs to another user' }
    await chmod(folder, 0o700)
    return { path: await realpath(folder) }
  } catch (error) {
    return { why: error instanceof Error ? error.message : String(error) }
  }
}

/** One place that would not do, and why. */
export type Refused = { folder: string; why: string }

/**
 * The root of the runs: the first candidate above which stands nothing that a tool would find. It is a folder of ours
 * alone and read-only. `refused` are the ones before it. Throws an Error that names all of them when none will do.
 */
export const chooseRunsRoot = async (
  candidates: readonly string[],
  uid: number,
): Promise<{ runs: string; refused: Refused[] }> => {
  const refused: Refused[] = []
  for (const folder of candidates) {
    const taken = await take(folder, uid)
    if ('why' in taken) {
      refused.push({ folder, why: taken.why })
      continue
    }
    // What stands in the root itself is cleared; only what is above it was put there by others.
    const found = await lookedUpFrom(join(taken.path, '..'))
    if (found.length > 0) {
      refused.push({ folder, why: `tools that work there would find ${found.join(', ')}` })
      continue
    }
    await makeReadOnly(taken.path)
    return { runs: taken.path, refused }
  }
  const reasons = refused.map(({ folder, why }) => `  ${folder}: ${why}`).join('\n')
  throw new Error(
    `there is no folder for the work of sessions above which nothing stands that tools look for:\n${reasons}\n` +
      'Name a home above which none of these files stand (GATEHOUSE_HOME), or remove them.',
  )
}
