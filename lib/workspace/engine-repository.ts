import { lstat, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { git } from './git.ts'
import { removeTree } from './remove-tree.ts'
import { expectTree, type Run } from './run-folder.ts'
import { repositoryConfig, writeSkeleton } from './skeleton.ts'

/** The branch that an engine finds itself on, at the base commit. */
export const workBranch = 'refs/heads/work'

const worktreeFolder = (run: Run): string => join(run.engine, 'worktrees', 'tree')
const link = (run: Run): string => `gitdir: ${worktreeFolder(run)}\n`

/** Makes the engine's repository with the tree as its worktree, on a branch at the base; `index` is still missing. */
export const createEngineRepository = async (run: Run): Promise<void> => {
  const worktree = worktreeFolder(run)
  await writeSkeleton(run.engine, {
    head: workBranch,
    nameLength: run.base.length,
    alternates: [join(run.mirror, 'objects')],
    packedRefs: run.refs,
    shallow: run.shallow,
  })
  await mkdir(worktree, { recursive: true })
  await Promise.all([
    writeFile(join(run.engine, workBranch), `${run.base}\n`),
    writeFile(join(worktree, 'HEAD'), `ref: ${workBranch}\n`),
    writeFile(join(worktree, 'commondir'), '../..\n'),
    writeFile(join(worktree, 'gitdir'), `${join(run.tree, '.git')}\n`),
    writeFile(join(run.tree, '.git'), link(run)),
  ])
}

/** Gives the engine's worktree an index of the base, by which work shows as uncommitted changes. */
export const indexBase = async (run: Run): Promise<void> => {
  await git(['read-tree', run.base], {
    gitDir: run.trusted,
    index: join(worktreeFolder(run), 'index'),
    signal: run.signal,
  })
}

/** Where the engine's own index is. */
export const engineIndex = (run: Run): string => join(worktreeFolder(run), 'index')

const isFile = async (path: string): Promise<boolean> =>
  (await lstat(path).catch(() => null))?.isFile() ?? false

const removeLocks = async (run: Run): Promise<void> => {
  for (const folder of [run.engine, worktreeFolder(run), join(run.engine, 'refs', 'heads')]) {
    const names = await readdir(folder)
    await Promise.all(
      names.filter((name) => name.endsWith('.lock')).map((name) => rm(join(folder, name), { force: true })),
    )
  }
}

const restoreFiles = async (run: Run): Promise<boolean> => {
  const worktree = worktreeFolder(run)
  const parts = [run.engine, worktree, join(run.engine, 'objects'), join(run.engine, 'refs')]
  for (const part of parts) if (!(await lstat(part).catch(() => null))?.isDirectory()) return false
  const fixed: [string, string][] = [
    [join(run.engine, 'config'), repositoryConfig({ nameLength: run.base.length })],
    [join(worktree, 'commondir'), '../..\n'],
    [join(worktree, 'gitdir'), `${join(run.tree, '.git')}\n`],
    [join(run.engine, 'objects', 'info', 'alternates'), `${join(run.mirror, 'objects')}\n`],
  ]
  await mkdir(join(run.engine, 'objects', 'info'), { recursive: true })
  for (const [path, text] of fixed) {
    await removeTree(path)
    await writeFile(path, text)
  }
  await Promise.all([rm(join(worktree, 'config.worktree'), { force: true }), removeLocks(run)])
  return true
}

/** Its config is ours again by now, so nothing planted there runs; only HEAD, index and objects are looked at. */
const works = async (run: Run): Promise<boolean> => {
  const answer = await git(['diff-index', '--cached', '--quiet', 'HEAD', '--'], {
    gitDir: worktreeFolder(run),
    allow: [0, 1, 128],
    signal: run.signal,
  })
  return answer.exitCode !== 128
}

/**
 * Makes git usable for the next engine in the tree, whatever the last one did to it, and leaves the files alone. The
 * config is always put back; commits and branches of the engine's own are kept as long as the repository is sound.
 */
export const repairEngineRepository = async (run: Run): Promise<void> => {
  await expectTree(run)
  const path = join(run.tree, '.git')
  const linked = (await isFile(path)) && (await readFile(path, 'utf8')) === link(run)
  if (!linked) {
    await removeTree(path)
    await writeFile(path, link(run))
  }
  const usable = await restoreFiles(run).catch(() => false)
  if (usable && (await works(run).catch(() => false))) return
  await removeTree(run.engine)
  await createEngineRepository(run)
  await indexBase(run)
}
