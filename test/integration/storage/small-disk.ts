import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const run = (command: string, args: string[]): boolean => {
  try {
    execFileSync(command, args, { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** A file system of its own of `megabytes`, or undefined where this user may not mount one (only root may). */
export const mountSmallDisk = (megabytes: number) => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-disk-'))
  if (!run('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'gatehouse-test', folder])) {
    rmSync(folder, { recursive: true })
    return undefined
  }
  const filler = join(folder, 'filler')
  return {
    folder,
    /** Takes all the room that is left. */
    fill: () => {
      try {
        for (;;) writeFileSync(filler, Buffer.alloc(64 * 1024), { flag: 'a' })
      } catch {
        // Full, which is what was wanted.
      }
    },
    empty: () => rmSync(filler, { force: true }),
    unmount: () => {
      run('umount', ['-l', folder])
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Makes a file immutable, or not any more; false where this user or file system can't. */
export const setImmutable = (file: string, on: boolean): boolean => run('chattr', [on ? '+i' : '-i', file])
