import { readdir, readFile, stat } from 'node:fs/promises'

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
  /** Those that print into this pipe. */
  pipe?: PipeIdentity
}

/** A running process; the signal for its group reaches it when `inGroup`. */
export type LiveProcess = { pid: number; inGroup: boolean }

/**
 * The running processes that match, this one never among them. A zombie doesn't count: it runs nothing, and
 * in a container whose first process doesn't reap it stays for ever. Without /proc (macOS) only a group can
 * be seen, and its leader's id stands for all of it.
 */
export const liveProcesses = async (query: ProcessQuery): Promise<LiveProcess[]> => {
  const pids = await processIds()
  if (pids === null) {
    const { group } = query
    return group !== null && groupExists(group) ? [{ pid: group, inGroup: true }] : []
  }
  const found = await Promise.all(pids.map((pid) => examine(pid, query)))
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

const processIds = async (): Promise<number[] | null> => {
  try {
    const names = await readdir('/proc')
    const pids = names.filter((name) => /^\d+$/.test(name)).map(Number)
    return pids.length === 0 ? null : pids.filter((pid) => pid !== process.pid)
  } catch {
    return null
  }
}

const examine = async (pid: number, query: ProcessQuery): Promise<LiveProcess | null> => {
  const stat = await readProc(pid, 'stat')
  if (stat === null) return null
  // The command name in parentheses may itself hold spaces and parentheses.
  const [state, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  if (state === 'Z' || state === 'X') return null
  if (query.group !== null && Number(group) === query.group) return { pid, inGroup: true }
  const isOurs = (await hasMark(pid, query.mark)) || (await printsInto(pid, query.pipe))
  return isOurs ? { pid, inGroup: false } : null
}

const hasMark = async (pid: number, mark: string | null): Promise<boolean> => {
  if (mark === null) return false
  const environment = await readProc(pid, 'environ')
  if (environment === null || !environment.includes(mark)) return false
  const wanted = new Set([`${processMark}=${mark}`, `${workerMark}=${mark}`])
  return environment.split('\0').some((entry) => wanted.has(entry))
}

const printsInto = async (pid: number, pipe: PipeIdentity | undefined): Promise<boolean> => {
  if (pipe === undefined) return false
  const outputs = await Promise.all([1, 2].map((fd) => identify(`/proc/${pid}/fd/${fd}`)))
  return outputs.some((output) => output?.ino === pipe.ino && output.dev === pipe.dev)
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
