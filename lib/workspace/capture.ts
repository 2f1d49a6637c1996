import { constants } from 'node:fs'
import { lstat, open, readdir, rm } from 'node:fs/promises'
import { GitError, git, gitWord, records } from './git.ts'
import { showPath } from './path-text.ts'
import { expectTree, onTree, type Run } from './run-folder.ts'

/** A path that is in the tree but not in what was captured. */
export type Unrecorded = {
  path: string
  /** The file or folder cannot be read, or git accepts no such name (`.GIT` and the like). */
  reason: 'unreadable' | 'name_refused'
}

/** The files as they stand. `embedded` are folders with a repository of their own, which no tree can hold. */
export type Captured = { tree: string; embedded: string[]; unrecorded: Unrecorded[] }

const isFolder = (path: Buffer): boolean => path.at(-1) === 0x2f
const joinNul = (paths: Buffer[]): Buffer => Buffer.concat(paths.flatMap((path) => [path, Buffer.from([0])]))

type Others = { files: Buffer[]; nested: Buffer[]; complained: boolean }

/** Files that are neither tracked nor ignored, and folders that are repositories of their own. */
const findOthers = async (run: Run): Promise<Others> => {
  const listed = await git(['ls-files', '-z', '--others', '--exclude-per-directory=.gitignore'], onTree(run))
  const found = records(listed.stdout)
  return {
    files: found.filter((path) => !isFolder(path)),
    nested: found.filter(isFolder).map((path) => path.subarray(0, -1)),
    complained: listed.stderr !== '',
  }
}

/** Tracked files that may differ. `removed` are gone; `retyped` are something else than they were. */
const findChanged = async (run: Run) => {
  const listed = await git(
    ['diff-files', '-z', '--name-status', '--no-ext-diff', '--ignore-submodules=dirty'],
    onTree(run),
  )
  const changed: Buffer[] = []
  const removed: Buffer[] = []
  let retyped = 0
  let status = ''
  for (const [index, record] of records(listed.stdout).entries()) {
    if (index % 2 === 0) status = record.toString('latin1')
    else if (status === 'D') removed.push(record)
    else changed.push(record)
    if (status === 'T') retyped++
  }
  return { changed, removed, retyped: retyped > 0, complained: listed.stderr !== '' }
}

/** Above so many files their objects go into one pack instead of a file each. */
const bulk = 100
const onePack = ['-c', 'core.bigFileThreshold=1']

const stage = async (run: Run, paths: Buffer[], removed: Buffer[]): Promise<{ complained: boolean }> => {
  await rm(`${run.index}.lock`, { force: true })
  if (removed.length > 0)
    await git(['update-index', '-z', '--force-remove', '--stdin'], {
      ...onTree(run),
      input: joinNul(removed),
    })
  const { stderr } = await git(
    [
      ...(paths.length > bulk ? onePack : []),
      'update-index',
      '-q',
      '--refresh',
      '-z',
      '--add',
      '--remove',
      '--replace',
      '--stdin',
    ],
    { ...onTree(run), input: joinNul(paths), allow: [0, 1] },
  )
  return { complained: stderr !== '' }
}

const inTree = (run: Run, path: Buffer): Buffer => Buffer.concat([Buffer.from(`${run.tree}/`), path])

const look = async (path: Buffer): Promise<'fine' | 'unreadable' | 'special'> => {
  try {
    const found = await lstat(path)
    if (found.isSymbolicLink() || found.isDirectory()) return 'fine'
    if (!found.isFile()) return 'special'
    await (await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)).close()
    return 'fine'
  } catch (error) {
    const gone =
      error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')
    return gone ? 'fine' : 'unreadable'
  }
}

/**
 * Stages what can be staged after git refused the lot: what is gone, and pipes and sockets, count as absent, and
 * unreadable files are told.
 */
const stageReadable = async (
  run: Run,
  paths: Buffer[],
  removed: Buffer[],
  cause: GitError,
): Promise<Buffer[]> => {
  const sorted: Record<'fine' | 'unreadable' | 'special', Buffer[]> = {
    fine: [],
    unreadable: [],
    special: [],
  }
  for (const path of paths) sorted[await look(inTree(run, path))].push(path)
  if (sorted.unreadable.length + sorted.special.length + removed.length === 0) throw cause
  await stage(run, sorted.fine, [...removed, ...sorted.special])
  return sorted.unreadable
}

const unreadableFolders = async (run: Run): Promise<Buffer[]> => {
  const found: Buffer[] = []
  const walk = async (folder: Buffer): Promise<void> => {
    const entries = await readdir(inTree(run, folder), { withFileTypes: true, encoding: 'buffer' }).catch(
      () => null,
    )
    if (entries === null) found.push(folder)
    for (const entry of entries ?? [])
      if (entry.isDirectory() && !entry.name.equals(Buffer.from('.git')))
        await walk(folder.length === 0 ? entry.name : Buffer.concat([folder, Buffer.from('/'), entry.name]))
  }
  await walk(Buffer.alloc(0))
  if (found.length === 0) return []
  const ignored = await git(['check-ignore', '-z', '--stdin'], {
    ...onTree(run),
    input: joinNul(found),
    allow: [0, 1],
  })
  const skipped = new Set(records(ignored.stdout).map((path) => path.toString('latin1')))
  return found.filter((path) => !skipped.has(path.toString('latin1')))
}

const because = (reason: Unrecorded['reason'], paths: Buffer[]): Unrecorded[] =>
  paths.map((path) => ({ path: showPath(path), reason }))

/**
 * Stages everything that the tree's own `.gitignore` files do not ignore and writes it as a tree object. Only our
 * repository, index and config take part, so nothing in a git directory of the engine's is read or run. Throws
 * WorkspaceError when the tree itself was replaced. `indexed` is the tree that our index holds, when that is known.
 */
export const capture = async (run: Run, indexed: string | null): Promise<Captured> => {
  await expectTree(run)
  const [before, { changed, removed, retyped, complained }] = await Promise.all([
    findOthers(run),
    findChanged(run),
  ])
  const unrecorded: Unrecorded[] = []
  const paths = [...changed, ...before.files]
  let refused = false
  if (paths.length + removed.length > 0) {
    try {
      refused = (await stage(run, [...removed, ...paths], [])).complained
    } catch (error) {
      if (!(error instanceof GitError && error.kind === 'exit')) throw error
      unrecorded.push(...because('unreadable', await stageReadable(run, paths, removed, error)))
    }
  }
  if (complained || before.complained) unrecorded.push(...because('unreadable', await unreadableFolders(run)))
  const unchanged = paths.length + removed.length === 0 && indexed !== null
  const [tree, after] = await Promise.all([
    unchanged ? indexed : gitWord(['write-tree'], onTree(run)),
    // A repository in the place of a tracked file is only seen once that file has left the index.
    refused || retyped || removed.length > 0 ? findOthers(run) : before,
  ])
  if (refused) unrecorded.push(...because('name_refused', after.files))
  return { tree, embedded: after.nested.map(showPath), unrecorded }
}
