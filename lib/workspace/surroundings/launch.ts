import { lstat, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { removeTree } from '../remove-tree.ts'
import { makeReadOnly, whileWritable } from './read-only.ts'

/**
 * The folder of one session's workers, one after another: `work` is for whatever they like, `trees` holds one place for each
 * tree.
 */
export type LaunchFolder = {
  runs: string
  folder: string
  work: string
  trees: string
  /** For the temporary files of setups and checks; elsewhere, since the path of a socket may only be so long. */
  temporary: string
}

/** What a launch's folder holds, and nothing else. */
export const launchParts: readonly string[] = ['trees', 'work']

/** Names of launches, by the ids of their sessions; anything else in the root of the runs is none of ours. */
export const isLaunch = (name: string): boolean => /^ses_[0-9a-z]+$/.test(name)

export const launchFolder = (runs: string, id: string): LaunchFolder => {
  const folder = join(runs, id)
  const temporary = join(tmpdir(), `gatehouse-${id}`)
  return { runs, folder, work: join(folder, 'work'), trees: join(folder, 'trees'), temporary }
}

const heldBy = ({ work }: LaunchFolder): string => join(work, 'held-by')

/** The worker that had a launch's folder last; null when that is not known. */
export const holderOf = (runs: string, id: string): Promise<string | null> =>
  readFile(heldBy(launchFolder(runs, id)), 'utf8').catch(() => null)

/** The launch that a worker had last, by its id; null when none is there. */
export const launchHeldBy = async (runs: string, worker: string): Promise<string | null> => {
  const ids = (await readdir(runs).catch((): string[] => [])).filter(isLaunch)
  const holders = await Promise.all(ids.map((id) => holderOf(runs, id)))
  return ids[holders.indexOf(worker)] ?? null
}

/** Makes the folder of a session's launch in the root of the runs, which is there; what stood there goes. */
export const makeLaunch = async (runs: string, id: string, worker: string): Promise<LaunchFolder> => {
  const launch = launchFolder(runs, id)
  await removeLaunch(runs, id)
  await whileWritable(runs, () => mkdir(launch.folder, { mode: 0o700 }))
  for (const path of [launch.work, launch.trees, launch.temporary]) await mkdir(path, { mode: 0o700 })
  await writeFile(heldBy(launch), worker)
  await Promise.all([launch.trees, launch.folder].map(makeReadOnly))
  return launch
}

/** Takes over the folder of a session's launch from a worker that is gone, with some of its places. */
export const reopenLaunch = async (
  runs: string,
  id: string,
  worker: string,
  kept: readonly string[],
): Promise<LaunchFolder> => {
  const launch = launchFolder(runs, id)
  await mendTrees(launch)
  for (const name of await readdir(launch.trees))
    if (!kept.includes(name)) await removeFrom(launch.trees, name)
  await removeTree(heldBy(launch))
  await writeFile(heldBy(launch), worker)
  return launch
}

/** Makes the folder of the trees again where something else stands, or nothing. */
export const mendTrees = async ({ folder, trees }: LaunchFolder): Promise<void> => {
  const found = await lstat(trees).catch(() => null)
  if (found?.isDirectory()) return
  await removeFrom(folder, basename(trees))
  await whileWritable(folder, () => mkdir(trees, { mode: 0o700 }))
  await makeReadOnly(trees)
}

const isThere = (path: string | Buffer): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  )

/** Removes an entry of a folder that is kept read-only, with all that it holds; nothing there is success. */
export const removeFrom = async (folder: string, name: string | Buffer): Promise<void> => {
  const path = Buffer.concat([Buffer.from(`${folder}/`), Buffer.from(name)])
  if (await isThere(path)) await whileWritable(folder, () => removeTree(path))
}

/** Removes the folder of a launch; nothing there is success. */
export const removeLaunch = async (runs: string, id: string): Promise<void> => {
  await removeTree(launchFolder(runs, id).temporary)
  if (await isThere(runs)) await removeFrom(runs, id)
}

/**
 * Removes what in the root of the runs belongs to no launch that lives, and returns the names: folders that a death left
 * over, and whatever else was put there. `problems` are those that could not be removed.
 */
export const clearLeftOvers = async (
  runs: string,
  lives: (id: string) => Promise<boolean>,
): Promise<{ removed: string[]; problems: string[] }> => {
  const removed: string[] = []
  const problems: string[] = []
  for (const bytes of await readdir(runs, { encoding: 'buffer' })) {
    const name = bytes.toString()
    if (isLaunch(name) && (await lives(name))) continue
    await (isLaunch(name) ? removeLaunch(runs, name) : removeFrom(runs, bytes)).then(
      () => removed.push(name),
      (error: unknown) => problems.push(`${name}: ${error instanceof Error ? error.message : error}`),
    )
  }
  return { removed, problems }
}
