import { lstat, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { removeTree } from '../../lib/workspace/remove-tree.ts'
import {
  type LaunchFolder,
  launchFolder,
  makeLaunch,
  reopenLaunch,
} from '../../lib/workspace/surroundings/launch.ts'

/**
 * What a worker leaves to the next one of its session: the worktree as it stands, with what the work ignores (installed
 * packages, build output). An engine could write this too, so it saves time and is never a matter of trust: the next worker
 * compares the files with the checkpoint, and judges a last time in a place that is new.
 */
const handOverSchema = z.strictObject({
  /** The checkpoint at which the worktree is. */
  checkpoint: z.string(),
  /** Whether the contract's setup has been run in it, and the stamp of the home that it left. */
  set_up: z.boolean(),
  home: z.string(),
})
export type HandOver = z.infer<typeof handOverSchema>

/** The place of a session's worktree, and the folder of what is believed of it. */
export const worktreeName = 'worktree'
export const runName = 'run'

const markerIn = ({ work }: LaunchFolder): string => join(work, 'handed-over.json')

const readMarker = async (launch: LaunchFolder): Promise<HandOver | null> => {
  try {
    return handOverSchema.parse(JSON.parse(await readFile(markerIn(launch), 'utf8')))
  } catch {
    return null
  }
}

/** Says in the session's folder that the worktree is for the next worker. */
export const handOver = (folder: string, left: HandOver): Promise<void> =>
  writeFile(join(folder, 'handed-over.json'), JSON.stringify(handOverSchema.parse(left)), { mode: 0o600 })

/** Whether a session's folder was left to its next worker, so that the end of this one is no reason to remove it. */
export const isHandedOver = async (runs: string, sessionId: string): Promise<boolean> =>
  (await readMarker(launchFolder(runs, sessionId))) !== null

const isFolder = async (path: string): Promise<boolean> =>
  (await lstat(path).catch(() => null))?.isDirectory() ?? false

/** The session's folder for its next worker: with what the one before has left, or new. */
export const takeOver = async (
  runs: string,
  sessionId: string,
  workerId: string,
): Promise<{ launch: LaunchFolder; left: HandOver | null }> => {
  const before = launchFolder(runs, sessionId)
  const left = (await isFolder(before.work)) ? await readMarker(before) : null
  const launch = left
    ? await reopenLaunch(runs, sessionId, workerId, [worktreeName])
    : await makeLaunch(runs, sessionId, workerId)
  if (left) {
    await rm(markerIn(launch), { recursive: true, force: true })
    const others = (await readdir(launch.work)).filter((name) => name !== runName && name !== 'held-by')
    await Promise.all(others.map((name) => removeTree(join(launch.work, name))))
  }
  await mkdir(join(launch.work, 'output'))
  return { launch, left }
}
