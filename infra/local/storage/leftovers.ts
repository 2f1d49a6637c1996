import { removeTree } from '../../../lib/workspace/remove-tree.ts'

export type Leftovers = {
  /** Removes the folder. Never rejects: what can't be removed is logged by name once, and remembered. */
  remove: (path: string) => Promise<void>
  /** Takes a folder that an earlier service left. */
  remember: (path: string) => void
  /** Tries again what is remembered, but for what `isInUse`. Never rejects. */
  retry: (isInUse: (path: string) => boolean) => Promise<void>
}

/**
 * Folders of ended runs that could not be removed, because of a file of another user, an immutable one or a mount. They
 * are nobody's fault to end for: they stay until a later try can remove them.
 */
export const createLeftovers = (log: (line: string) => void): Leftovers => {
  const left = new Set<string>()
  const named = new Set<string>()
  const remove = async (path: string): Promise<void> => {
    try {
      await removeTree(path)
      left.delete(path)
      named.delete(path)
    } catch (error) {
      left.add(path)
      if (named.has(path)) return
      named.add(path)
      const reason = error instanceof Error ? error.message : String(error)
      log(`${path} could not be removed and is tried again later: ${reason}`)
    }
  }
  return {
    remove,
    remember: (path) => void left.add(path),
    retry: async (isInUse) => {
      for (const path of [...left]) if (!isInUse(path)) await remove(path)
    },
  }
}
