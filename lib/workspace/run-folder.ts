import { lstat, mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { WorkspaceError } from './failure.ts'
import type { GitOptions } from './git.ts'
import { removeTree } from './remove-tree.ts'

/** Where the parts of one run are. */
export type RunStart = {
  /** What we believe and commit with; an engine is never told of it. */
  trusted: string
  /** Our index of the tree. */
  index: string
  /** The repository an engine sees, of which the tree is a worktree. */
  engine: string
  tree: string
  mirror: string
  base: string
  shallow: Buffer | null
  signal: AbortSignal | undefined
}

/** A run, and what it starts from. */
export type Run = RunStart & {
  /** The tree of the base commit. */
  baseTree: string
  /** `packed-refs` text: the repository's tags, and its branches as `origin/…`. */
  refs: string
}

const marker = '.gatehouse-run'

/**
 * Makes folders of ours at `root` and `tree`, empty but for what is `kept` in `root`, and for the files of the tree where
 * that is kept. Throws when `root` holds anything that no run of ours made.
 */
export const prepareFolder = async (
  root: string,
  tree: string,
  kept: { names: readonly string[]; tree: boolean },
): Promise<void> => {
  const isFolder = (await lstat(root).catch(() => null))?.isDirectory() ?? false
  // A link in its place would lead us to files of others.
  if (!isFolder) await removeTree(root)
  const found = isFolder ? await readdir(root) : []
  if (found.length > 0 && !found.includes(marker))
    throw new WorkspaceError('folder_not_ours', `${root} holds files that no run of ours made.`)
  const leaving = found.filter((name) => !kept.names.includes(name))
  await Promise.all(leaving.map((name) => removeTree(join(root, name))))
  if (!kept.tree) await removeTree(tree)
  await mkdir(root, { recursive: true, mode: 0o700 })
  await mkdir(tree, { recursive: true, mode: 0o700 })
  await writeFile(join(root, marker), '')
}

/** Git options that read and write the tree through our own repository and index. */
export const onTree = (run: RunStart): GitOptions => ({
  gitDir: run.trusted,
  workTree: run.tree,
  index: run.index,
  cwd: run.tree,
  signal: run.signal,
})

/** Git options for our repository alone: bare, so attributes and ignore rules of the tree have no say. */
export const onObjects = (run: RunStart): GitOptions => ({ gitDir: run.trusted, signal: run.signal })

/** Throws when something else stands where the tree was, so that no link leads us to files of others. */
export const expectTree = async (run: Run): Promise<void> => {
  const found = await lstat(run.tree).catch(() => null)
  if (!found?.isDirectory())
    throw new WorkspaceError('worktree_replaced', 'The working tree is gone or no longer a folder.')
}
