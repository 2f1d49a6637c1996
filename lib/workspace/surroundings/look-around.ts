import { lstat, readdir, realpath } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isLaunch, type LaunchFolder, launchParts, removeFrom } from './launch.ts'
import { lookedUpFrom } from './look-up.ts'

/** What stood above a tree and does not belong there; paths. */
export type Found = {
  /** In folders of ours, and gone now. */
  removed: string[]
  /** What tools would find and we could not or may not remove: a command that ran now would say nothing about the tree. */
  foreign: string[]
}

type Folder = { path: string; belongs: (name: string) => boolean }

/** Empties a folder of what does not belong in it. */
const clear = async ({ path, belongs }: Folder): Promise<Found> => {
  const found: Found = { removed: [], foreign: [] }
  for (const bytes of await readdir(path, { encoding: 'buffer' })) {
    const name = bytes.toString()
    if (belongs(name)) continue
    const cleared = await removeFrom(path, bytes).then(
      () => true,
      () => false,
    )
    found[cleared ? 'removed' : 'foreign'].push(join(path, name))
  }
  return found
}

/** Whether the path is a folder, and no folder on the way to it was replaced by a link. */
const isItself = async (path: string): Promise<boolean> =>
  (await realpath(path).catch(() => null)) === path && (await lstat(path)).isDirectory()

/**
 * Looks at every folder above a tree of a launch. Those from the root of the runs down are ours and hold exactly what we put
 * there: anything else is removed. Above them nothing may stand that tools look for; it is not ours to remove.
 */
export const lookAround = async (
  launch: LaunchFolder,
  places: ReadonlySet<string>,
  { folder, tree }: { folder: string; tree: string },
): Promise<Found> => {
  if (!(await isItself(tree))) return { removed: [], foreign: [tree] }
  const ours: Folder[] = [
    { path: launch.runs, belongs: isLaunch },
    { path: launch.folder, belongs: (name) => launchParts.includes(name) },
    { path: launch.trees, belongs: (name) => places.has(name) },
    { path: folder, belongs: (name) => name === 'tree' || name === 'home' },
  ]
  const cleared: Found[] = []
  for (const one of ours) cleared.push(await clear(one))
  const above = await lookedUpFrom(dirname(launch.runs))
  return {
    removed: cleared.flatMap(({ removed }) => removed),
    foreign: [...cleared.flatMap(({ foreign }) => foreign), ...above],
  }
}
