import { readFileSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'

/** What the kernel says of a process in its `stat` file. */
export type ProcessStat = {
  pid: number
  /** The letter of its state; `Z` and `X` run nothing any more. */
  state: string
  parent: number
  group: number
  /** Its terminal, 0 when it has none. */
  terminal: number
  /** When it started, in the kernel's ticks since boot: with the id it names one process for ever. */
  started: number
}

/** Reads the text of a `stat` file; null for one that has another shape. Pure. */
const parse = (pid: number, text: string): ProcessStat | null => {
  // The command name in parentheses may itself hold spaces and parentheses.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const [state, parent, group, , terminal] = fields
  const started = fields[19]
  if (state === undefined || started === undefined) return null
  return {
    ...{ pid, state, parent: Number(parent), group: Number(group) },
    ...{ terminal: Number(terminal), started: Number(started) },
  }
}

/** Whether it still runs something: a zombie stays for ever in a container whose first process doesn't reap it. */
export const runs = ({ state }: ProcessStat): boolean => state !== 'Z' && state !== 'X'

/** When a process started; null when it is gone or where there is no /proc. */
export const startOf = (pid: number): number | null => {
  try {
    const stat = parse(pid, readFileSync(`/proc/${pid}/stat`, 'latin1'))
    return stat !== null && runs(stat) ? stat.started : null
  } catch {
    return null
  }
}

/** All processes by their id, this one and zombies included; null where there is no /proc. */
export const allProcesses = async (): Promise<Map<number, ProcessStat> | null> => {
  const names = await readdir('/proc').catch((): string[] => [])
  const pids = names.filter((name) => /^\d+$/.test(name)).map(Number)
  if (pids.length === 0) return null
  const stats = await Promise.all(
    pids.map(async (pid) => {
      const text = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => null)
      return text === null ? null : parse(pid, text)
    }),
  )
  return new Map(stats.filter((stat) => stat !== null).map((stat) => [stat.pid, stat]))
}
