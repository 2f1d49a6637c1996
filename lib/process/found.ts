import { realpathSync } from 'node:fs'
import { readdir, readFile, readlink } from 'node:fs/promises'
import { type ProcessStat, runs } from './stat.ts'

/** A folder that a run has to itself, by which its processes are found when they carry no mark any more. */
export type Place = {
  folder: string
  /** When the run's worker started (`startOf`): what is older is none of its. Null when that is not known. */
  since: number | null
}

/** Every process there is, and which of them we are. */
type Surroundings = { all: ReadonlyMap<number, ProcessStat>; looker: number }

const init = 1

const lineOf = (pid: number, all: Surroundings['all']): Set<number> => {
  const line = new Set<number>()
  for (let at = all.get(pid); at !== undefined && !line.has(at.pid); at = all.get(at.parent)) line.add(at.pid)
  return line
}

/**
 * Whether a process can have come out of a run, were it found in its folder. A daemon has lost its parent, so
 * it hangs below the first process of the system or below one that we come from ourselves. What has a terminal
 * is a person's, who looks at the run: a run has none, and one that it made goes with the process that made it.
 * What lives below us is known otherwise. Pure.
 */
export const mayBeOfRun = (
  one: ProcessStat,
  since: Place['since'],
  { all, looker }: Surroundings,
): boolean => {
  const line = lineOf(looker, all)
  if (!runs(one) || one.terminal !== 0 || line.has(one.pid) || one.pid === init) return false
  if (since !== null && one.started < since) return false
  const seen = new Set<number>()
  for (let at = one.parent; at !== init; ) {
    if (at === looker || seen.has(at)) return false
    if (line.has(at)) return true
    seen.add(at)
    // A parent of id 0 is outside of what we can see; one that has gone since has left an orphan.
    if (at === 0) return false
    const parent = all.get(at)
    if (parent === undefined) return true
    if (since === null || parent.started < since) return false
    at = parent.parent
  }
  return true
}

/** The folder as the kernel names it. */
export const rootOf = (folder: string): string => {
  try {
    return realpathSync(folder)
  } catch {
    return folder
  }
}

const isBelow = (path: string, root: string): boolean =>
  path.startsWith(`${root}/`) || path === root || path === `${root} (deleted)`

const linksTo = async (path: string, root: string): Promise<boolean> =>
  isBelow(await readlink(path).catch(() => ''), root)

const anyOpen = async (pid: number, root: string): Promise<boolean> => {
  for (const fd of await readdir(`/proc/${pid}/fd`).catch((): string[] => []))
    if (await linksTo(`/proc/${pid}/fd/${fd}`, root)) return true
  return false
}

const anyMapped = async (pid: number, root: string): Promise<boolean> => {
  const maps = await readFile(`/proc/${pid}/maps`, 'utf8').catch(() => '')
  if (!maps.includes(root)) return false
  return maps.split('\n').some((line) => {
    const at = line.indexOf('/')
    return at !== -1 && isBelow(line.slice(at), root)
  })
}

/**
 * Whether a process has its working folder, its root, its executable, an open file or a mapped one in a folder
 * (as `rootOf` names it), be it a removed one. One that can't be looked into has not.
 */
export const isPlacedBelow = async (pid: number, root: string): Promise<boolean> => {
  for (const link of ['cwd', 'root', 'exe']) if (await linksTo(`/proc/${pid}/${link}`, root)) return true
  return (await anyOpen(pid, root)) || (await anyMapped(pid, root))
}
