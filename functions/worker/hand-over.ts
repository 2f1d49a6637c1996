import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'

/**
 * What a worker leaves to the next one of its session: the worktree as it stands, with what the work ignores (installed
 * packages, build output). It is a matter of time saved and never of trust: the next one compares the files with the
 * checkpoint, and makes the worktree anew where anything differs.
 */
const handOverSchema = z.strictObject({
  /** The checkpoint at which the worktree is. */
  checkpoint: z.string(),
  /** Whether the contract's setup has been run in it. */
  set_up: z.boolean(),
})
export type HandOver = z.infer<typeof handOverSchema>

/** A session's private folder on the machine of its workers, which hold it one after another. */
export const sessionFolder = (home: string, sessionId: string): string => join(home, 'runs', sessionId)

const markerIn = (folder: string): string => join(folder, 'handed-over.json')

/** Says in the session's folder that the worktree is for the next worker. */
export const handOver = (folder: string, left: HandOver): Promise<void> =>
  writeFile(markerIn(folder), JSON.stringify(handOverSchema.parse(left)), { mode: 0o600 })

/** Whether a worker's folder was left to the next one, so that its end is no reason to remove it. */
export const isHandedOver = async (folder: string): Promise<boolean> => (await readMarker(folder)) !== null

const readMarker = async (folder: string): Promise<HandOver | null> => {
  try {
    return handOverSchema.parse(JSON.parse(await readFile(markerIn(folder), 'utf8')))
  } catch {
    return null
  }
}

/** What the worker before has left, which is from now on ours; null when there is nothing to go on with. */
export const takeOver = async (folder: string): Promise<HandOver | null> => {
  const left = await readMarker(folder)
  await rm(markerIn(folder), { recursive: true, force: true })
  return left
}
