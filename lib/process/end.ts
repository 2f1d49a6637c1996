import { setTimeout as sleep } from 'node:timers/promises'
import { limits } from '../limits.ts'
import type { Place } from './found.ts'
import { liveProcesses, type ProcessQuery, send } from './live.ts'
import { startOf } from './stat.ts'

const pollMs = 25

/**
 * Ends every process that matches: TERM, and KILL after `limits.killGraceMs` for those that are still there.
 * Resolves to how many are alive when the same time has passed again: 0 means it was seen that none remain.
 */
export const endProcesses = async (query: ProcessQuery): Promise<number> => {
  const remaining = await signalUntilGone(query, 'SIGTERM')
  return remaining === 0 ? 0 : await signalUntilGone(query, 'SIGKILL')
}

/**
 * Ends every process whose environment carries `mark`, be it the mark of one run or of a worker, and what has
 * anything in the run's `place`: for whoever cleans up after a worker that was killed. Resolves to how many are
 * still alive, 0 when it was seen in each of these ways that none is. Does nothing where there is no /proc.
 */
export const killMarked = (mark: string, place?: Place): Promise<number> =>
  endProcesses({ group: null, mark, place })

const signalUntilGone = async (query: ProcessQuery, signal: 'SIGTERM' | 'SIGKILL'): Promise<number> => {
  const told = new Set<number>()
  const giveUpAt = performance.now() + limits.killGraceMs
  for (let round = 0; ; round += 1) {
    const alive = await liveProcesses(query)
    if (alive.length === 0 || performance.now() >= giveUpAt) return alive.length
    const again = signal === 'SIGKILL'
    if (query.group !== null && (round === 0 || again)) send(-query.group, signal)
    for (const { pid, started, inGroup } of alive) {
      // One TERM each: to many programs a second one means "at once, without cleaning up".
      if (inGroup || (told.has(pid) && !again)) continue
      told.add(pid)
      // The id may have gone to another process since it was looked at.
      if (startOf(pid) === started) send(pid, signal)
    }
    await sleep(pollMs)
  }
}
