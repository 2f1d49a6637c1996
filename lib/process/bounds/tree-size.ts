import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'

const blockBytes = 512

/** The bytes that a folder takes on the disk, with what is ignored there; links are not followed. Ends early beyond `enough`. */
export const treeSize = async (folder: string, enough: number): Promise<number> => {
  let bytes = 0
  const folders = [folder]
  for (let at = folders.pop(); at !== undefined && bytes <= enough; at = folders.pop()) {
    // What goes away while it is looked at, or can't be read, counts for nothing.
    for (const entry of await readdir(at, { withFileTypes: true }).catch(() => [])) {
      const path = join(at, entry.name)
      if (entry.isDirectory()) folders.push(path)
      else bytes += ((await lstat(path).catch(() => null))?.blocks ?? 0) * blockBytes
    }
  }
  return bytes
}
