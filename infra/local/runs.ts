import { liveProcesses } from '../../lib/process/live.ts'
import { clearLeftOvers } from '../../lib/workspace/surroundings/launch.ts'
import { chooseRunsRoot, type Refused, runsCandidates } from '../../lib/workspace/surroundings/root.ts'

/** The root of this stack's runs. */
export type RunsRoot = {
  folder: string
  /** Better places, and why they would not do. */
  refused: readonly Refused[]
  /** What was left over in it by the time it was opened, and is gone; names. */
  cleared: readonly string[]
}

/** Of a launch something runs as long as any process carries its mark. */
const isAlive = async (id: string): Promise<boolean> =>
  (await liveProcesses({ group: null, mark: id })).length > 0

/**
 * Chooses the root of the runs (lib/workspace/surroundings) and clears it. Throws an Error that names what is in the way
 * everywhere.
 */
export const openRuns = async (home: string, log: (line: string) => void) => {
  const uid = process.getuid?.() ?? 0
  const { runs, refused } = await chooseRunsRoot(runsCandidates(home, uid), uid)
  const clear = async (isRunning: (id: string) => Promise<boolean>): Promise<string[]> => {
    const lives = async (id: string) => (await isRunning(id)) || (await isAlive(id))
    const { removed, problems } = await clearLeftOvers(runs, lives)
    if (problems.length > 0) log(`left over in ${runs}: ${problems.join('; ')}`)
    return removed
  }
  const root: RunsRoot = { folder: runs, refused, cleared: await clear(async () => false) }
  return {
    root,
    /** Removes what belongs to no launch that lives, and names it. */
    clear: async (isRunning: (id: string) => Promise<boolean>): Promise<void> => {
      const removed = await clear(isRunning)
      if (removed.length > 0) log(`left over in ${runs}, and removed: ${removed.join(', ')}`)
    },
  }
}
