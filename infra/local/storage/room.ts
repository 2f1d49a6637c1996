import { statfs } from 'node:fs/promises'

const full = new Set(['ENOSPC', 'EDQUOT'])

const causes = function* (error: unknown): Generator<Error> {
  for (let at = error; at instanceof Error; at = at.cause) yield at
}

/** Whether the disk had no room, or the user's quota was used up: by its code, or as LevelDB words it. */
export const isDiskFull = (error: unknown): boolean =>
  [...causes(error)].some(
    (one) =>
      ('code' in one && full.has(String(one.code))) ||
      /No space left on device|Disk quota exceeded/.test(one.message),
  )

/** Bytes that may still be written on the file system of `folder`. */
export const freeBytes = async (folder: string): Promise<number> => {
  const { bavail, bsize } = await statfs(folder)
  return bavail * bsize
}

export const noRoom = 'There is no room on the disk of the data folder; make some and try again.'

/** Why nothing more may be begun that needs room; null while each of the folders' disks has `floor` bytes left. */
export const lackOfRoom = async (folders: readonly string[], floor: number): Promise<string | null> => {
  for (const folder of folders) {
    const free = await freeBytes(folder)
    if (free < floor)
      return `The disk of ${folder} has ${megabytes(free)} MB left, and at least ${megabytes(floor)} MB are needed; make room and try again.`
  }
  return null
}

const megabytes = (bytes: number): number => Math.floor(bytes / (1024 * 1024))
