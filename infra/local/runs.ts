import { liveProcesses } from '../../lib/process/live.ts'
import { clearLeftOvers, holderOf } from '../../lib/workspace/surroundings/launch.ts'
import { chooseRunsRoot, type Refused, runsCandidates } from '../../lib/workspace/surroundings/root.ts'

/** The root of this stack's runs. */
export type RunsRoot = {
  folder: string
  /** Better places, and why they would not do. */
  refused: readonly Refused[]
  /** What was left over in it by the time it was opened, and is gone; names. */
  cleared: readonly string[]
}

/** Of a launch something runs as long as any process carries the mark of its worker. */
const isAlive = async (runs: string, id: string): Promise<boolean> => {
  const mark = await holderOf(runs, id)
  return mark !== null && (await liveProcesses({ group: null, mark })).length > 0
}

/**
 * Chooses the root of the runs (lib/workspace/surroundings) and clears it. Throws an Error that names what is in the way
 * everywhere.
 */
export const openRuns = async (home: string, log: (line: string) => void) => {
  const uid = process.getuid?.() ?? 0
  const { runs, refused } = await chooseRunsRoot(runsCandidates(home, uid), uid)
  /** What could not be removed the last time; each is named once. */
  let told: ReadonlySet<string> = new Set()
  const clear = async (isHeld: (id: string) => boolean): Promise<string[]> => {
    const lives = async (id: string) => isHeld(id) || (await isAlive(runs, id))
    const { removed, problems } = await clearLeftOvers(runs, lives)
    const fresh = problems.filter((problem) => !told.has(problem))
    told = new Set(problems)
    if (fresh.length > 0) log(`left over in ${runs}, and tried again later: ${fresh.join('; ')}`)
    return removed
  }
  const root: RunsRoot = { folder: runs, refused, cleared: await clear(() => false) }
  return {
    root,
    /** Removes what belongs to no launch that lives, and names it. */
    clear: async (isHeld: (id: string) => boolean): Promise<void> => {
      const removed = await clear(isHeld)
      if (removed.length > 0) log(`left over in ${runs}, and removed: ${removed.join(', ')}`)
    },
  }
}
