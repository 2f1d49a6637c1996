import { lstatSync } from 'node:fs'
import { setImmediate as breathe } from 'node:timers/promises'
import { git, records } from './git.ts'
import { expectTree, onTree, type Run } from './run-folder.ts'

/** What the kernel keeps of each file of the work, by path (bytes read as Latin-1); a repository in the tree counts as one file. */
export type FileStamps = ReadonlyMap<string, string>

/** Files that are looked at before others get their turn. */
const batch = 1000

const isFolder = (path: Buffer): boolean => path.at(-1) === 0x2f

/** The time of a file's last change is the kernel's own: an owner can set back every other, but not this one. */
const stampOf = (path: Buffer): string => {
  try {
    const { ino, size, ctimeNs } = lstatSync(path, { bigint: true })
    return `${ino} ${size} ${ctimeNs}`
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
  }
}

/** Stamps what a capture would take: all files that are tracked, or new and not ignored. Throws WorkspaceError as a capture does. */
export const stampFiles = async (run: Run): Promise<FileStamps> => {
  await expectTree(run)
  const listed = await git(
    ['ls-files', '-z', '--cached', '--others', '--exclude-per-directory=.gitignore'],
    onTree(run),
  )
  const root = Buffer.from(`${run.tree}/`)
  const stamps = new Map<string, string>()
  for (const path of records(listed.stdout)) {
    if (stamps.size % batch === batch - 1) await breathe()
    const stamp = isFolder(path) ? 'repository' : stampOf(Buffer.concat([root, path]))
    stamps.set(path.toString('latin1'), stamp)
  }
  return stamps
}

/**
 * Whether any file was written, made, moved or removed between two stampings, be it with what it held before
 * (spec/coder-session.md 7.3). Reading is nothing; a new mode or another name for a file counts. Pure.
 */
export const wereTouched = (before: FileStamps, after: FileStamps): boolean =>
  before.size !== after.size || [...after].some(([path, stamp]) => before.get(path) !== stamp)
