import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'

const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants

/** An opened folder or file names itself whatever is put in its place, so no link leads us elsewhere. */
const below = (parent: FileHandle, name: string): Promise<FileHandle> =>
  open(`/proc/self/fd/${parent.fd}/${name}`, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)

const root = 0

/** Gives a file of ours to the owner of the repository, with the group of the folder that it is in. */
const give = async (parent: FileHandle, made: FileHandle, owner: number): Promise<void> => {
  const [{ gid }, found] = await Promise.all([parent.stat(), made.stat()])
  // A file with two names may be one of ours that its owner put there.
  const isOurs = found.isDirectory() || (found.isFile() && found.nlink === 1)
  if (found.uid === root && isOurs) await made.chown(owner, gid)
}

/** Walks from a folder down a path and gives away each of its parts. */
const giveAlong = async (folder: FileHandle, parts: readonly string[], owner: number): Promise<void> => {
  const [name, ...rest] = parts
  if (name === undefined) return
  const made = await below(folder, name)
  try {
    await give(folder, made, owner)
    await giveAlong(made, rest, owner)
  } finally {
    await made.close()
  }
}

/**
 * Gives what root made below `folder`, a part of somebody's repository, to whom that repository belongs: each part of
 * each path. Without root's rights nothing can be given, and nothing has to be: what is made is ours as it is anywhere.
 * Throws nothing: the work is delivered.
 */
export const handOver = async (
  repository: string,
  folder: string,
  paths: readonly (readonly string[])[],
): Promise<void> => {
  if (process.geteuid?.() !== root) return
  const handles: FileHandle[] = []
  try {
    for (const path of [repository, folder]) handles.push(await open(path, O_RDONLY))
    const [owned, top] = handles
    const owner = (await owned?.stat())?.uid ?? root
    if (top === undefined || owner === root) return
    for (const parts of paths) await giveAlong(top, parts, owner).catch(() => {})
  } catch {
    // Gone meanwhile.
  } finally {
    for (const handle of handles) await handle.close()
  }
}
