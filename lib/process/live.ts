import { readdir, readFile, stat } from 'node:fs/promises'
import { isPlacedBelow, mayBeOfRun, type Place, rootOf } from './found.ts'
import { allProcesses, type ProcessStat, runs } from './stat.ts'

/** Environment variable that marks the processes of one run. */
export const processMark = 'GATEHOUSE_PROCESS_MARK'
/** Environment variable that marks a worker and every process that it starts. */
export const workerMark = 'GATEHOUSE_WORKER_MARK'

/** A pipe, by what the system knows it by. */
export type PipeIdentity = { dev: number; ino: number }

/** Which processes to look for; one that matches in any respect is meant. */
export type ProcessQuery = {
  /** Members of this process group. */
  group: number | null
  /** Those that carry this mark, at either level, in the environment they were started with. */
  mark: string | null
  /** Those that hold this pipe. */
  pipe?: PipeIdentity
  /** Those that have anything in the run's own folder. */
  place?: Place | undefined
}

/** A running process; the signal for its group reaches it when `inGroup`. */
export type LiveProcess = Pick<ProcessStat, 'pid' | 'started'> & { inGroup: boolean }

/**
 * The running processes that match, this one never among them. A zombie doesn't count. Without /proc (macOS)
 * only a group can be seen, and its leader's id stands for all of it.
 */
export const liveProcesses = async (query: ProcessQuery): Promise<LiveProcess[]> => {
  const all = await allProcesses()
  if (all === null) {
    const { group } = query
    return group !== null && groupExists(group) ? [{ pid: group, started: 0, inGroup: true }] : []
  }
  const { place } = query
  const root = place === undefined ? null : rootOf(place.folder)
  const isPlaced = async (one: ProcessStat): Promise<boolean> =>
    root !== null &&
    place !== undefined &&
    mayBeOfRun(one, place.since, { all, looker: process.pid }) &&
    (await isPlacedBelow(one.pid, root))
  const others = [...all.values()].filter((one) => one.pid !== process.pid && runs(one))
  const found = await Promise.all(
    others.map(async (one) => {
      const { pid, started } = one
      if (query.group !== null && one.group === query.group) return { pid, started, inGroup: true }
      const isMeant =
        (await hasMark(pid, query.mark)) || (await holds(pid, query.pipe)) || (await isPlaced(one))
      return isMeant ? { pid, started, inGroup: false } : null
    }),
  )
  return found.filter((one) => one !== null)
}

/**
 * Sends a signal to a process id, or to a group by its negative id; one that is gone or not ours is left
 * alone.
 */
export const send = (pid: number, signal: NodeJS.Signals): void => {
  try {
    process.kill(pid, signal)
  } catch {}
}

const hasMark = async (pid: number, mark: string | null): Promise<boolean> => {
  if (mark === null) return false
  const environment = await readProc(pid, 'environ')
  if (environment === null || !environment.includes(mark)) return false
  const wanted = new Set([`${processMark}=${mark}`, `${workerMark}=${mark}`])
  return environment.split('\0').some((entry) => wanted.has(entry))
}

const holds = async (pid: number, pipe: PipeIdentity | undefined): Promise<boolean> => {
  if (pipe === undefined) return false
  for (const fd of await readdir(`/proc/${pid}/fd`).catch((): string[] => [])) {
    const open = await identify(`/proc/${pid}/fd/${fd}`)
    if (open?.ino === pipe.ino && open.dev === pipe.dev) return true
  }
  return false
}

const identify = async (path: string): Promise<PipeIdentity | null> => {
  try {
    return await stat(path)
  } catch {
    return null
  }
}

const readProc = async (pid: number, name: string): Promise<string | null> => {
  try {
    return await readFile(`/proc/${pid}/${name}`, 'utf8')
  } catch {
    return null
  }
}

const groupExists = (group: number): boolean => {
  try {
    process.kill(-group, 0)
    return true
  } catch {
    return false
  }
}
