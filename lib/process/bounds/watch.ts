import { statfs } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { limits } from '../../limits.ts'
import type { Bounds, Excess } from './excess.ts'
import { treeSize } from './tree-size.ts'

/** A walk over the tree takes at most this part of the time. */
const walkShare = 1 / 20

/** Whether the disk of a folder has less than `free` bytes left. */
export const isShort = async (folder: string, free: number): Promise<boolean> => {
  const disk = await statfs(folder).catch(() => null)
  return disk !== null && disk.bavail * disk.bsize < free
}

/**
 * Looks at what a run takes of the disk until `signal` fires, and resolves to what it had too much of; to null if that
 * never came. `printed` tells the bytes of its output.
 */
export const watchExcess = async (
  tree: string,
  bounds: Bounds,
  printed: () => number,
  signal: AbortSignal,
): Promise<Excess | null> => {
  let walkAt = 0
  while (!signal.aborted) {
    if (printed() > bounds.output) return 'output_too_large'
    if (await isShort(tree, bounds.free)) return 'out_of_room'
    const began = performance.now()
    if (began >= walkAt) {
      if ((await treeSize(tree, bounds.tree)) > bounds.tree) return 'tree_too_large'
      const took = performance.now() - began
      walkAt = began + Math.max(limits.run.walkMs, took / walkShare)
    }
    await sleep(limits.run.lookMs, undefined, { signal, ref: false }).catch(() => {})
  }
  return null
}
