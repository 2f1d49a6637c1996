import { copyFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { type Captured, capture } from './capture.ts'
import { type Changes, changedPaths, reorderedPaths } from './changes.ts'
import { type Checkpoint, checkpoint, restoreCheckpoint } from './checkpoint.ts'
import { cleanCheckout } from './clean-checkout.ts'
import {
  createEngineRepository,
  engineIndex,
  indexBase,
  repairEngineRepository,
} from './engine-repository.ts'
import { WorkspaceError } from './failure.ts'
import { type FileStamps, stampFiles } from './file-stamps.ts'
import { git, gitWord } from './git.ts'
import { writePatch } from './patch.ts'
import { removeTree } from './remove-tree.ts'
import { reset } from './reset.ts'
import { onTree, type Run } from './run-folder.ts'
import { squash } from './squash.ts'
import { type TreeFiles, treeFiles } from './tree-files.ts'
import { createTrusted, type OpenOptions, type Trusted } from './trusted.ts'

/** One worker run's working tree and the repository that we believe. Functions throw GitError when git itself fails. */
export type Workspace = Trusted & {
  /** Where engines and checks work. */
  tree: string
  /** The base's tree: a captured tree equal to it means that nothing changed. */
  baseTree: string
  capture(): Promise<Captured>
  /** Before and after an engine's run they tell whether it wrote to any file of the work. */
  stamps(): Promise<FileStamps>
  repairEngineRepository(): Promise<void>
  reset(tree: string): Promise<void>
  checkpoint(tree: string): Promise<Checkpoint>
  /** Captures and saves the files as they stand although the run's own signal has fired; `signal` ends this. */
  save(signal: AbortSignal): Promise<Checkpoint & { tree: string }>
  cleanCheckout(commit: string, directory: string): Promise<void>
  changedPaths(commit: string): Promise<Changes>
  reorderedPaths(commit: string): Promise<string[]>
  /** All files of a commit, to be read one by one. */
  files(commit: string): Promise<TreeFiles>
  writePatch(commit: string, file: string): Promise<number>
  /** Removes the run's whole folder. */
  close(): Promise<void>
}

const carriedRefs = async (mirror: string, signal: AbortSignal | undefined): Promise<string> => {
  const { stdout } = await git(
    ['for-each-ref', '--format=%(objectname) %(refname)', 'refs/heads', 'refs/tags'],
    { gitDir: mirror, signal },
  )
  return stdout.toString('latin1').replaceAll(' refs/heads/', ' refs/remotes/origin/')
}

const findBaseTree = (options: OpenOptions): Promise<string> =>
  gitWord(['rev-parse', '--verify', `${options.base}^{tree}`], {
    gitDir: options.mirror,
    signal: options.signal,
  })

/**
 * Makes a run's folder: our repository, the engine's, and the tree checked out at the base or at a checkpoint. Throws
 * WorkspaceError when the folder holds other files or the checkpoint does not restore.
 */
export const openWorkspace = async (options: OpenOptions): Promise<Workspace> => {
  const start = await createTrusted(options, false)
  const restored =
    options.checkpoint === undefined ? start.base : await restoreCheckpoint(start, options.checkpoint)
  const [refs, baseTree] = await Promise.all([
    carriedRefs(options.mirror, options.signal),
    findBaseTree(options),
    git(['read-tree', '-u', '--reset', restored], onTree(start)),
  ])
  const run: Run = { ...start, refs, baseTree }
  await createEngineRepository(run)
  const atBase = restored === run.base || restored === run.baseTree
  if (atBase) await copyFile(run.index, engineIndex(run))
  else await indexBase(run)
  return workspaceIn(run, { tree: atBase ? baseTree : restored, embedded: [] })
}

/**
 * Goes on with the tree that an earlier run left in the folder, and with the repository that its engine saw: all that we
 * believe is made anew. Throws WorkspaceError unless the files are those of the checkpoint, but for what they ignore.
 */
export const adoptWorkspace = async (
  options: OpenOptions & { checkpoint: Checkpoint },
): Promise<Workspace> => {
  const start = await createTrusted(options, true)
  const restored = await restoreCheckpoint(start, options.checkpoint)
  const [refs, baseTree] = await Promise.all([
    carriedRefs(options.mirror, options.signal),
    findBaseTree(options),
    git(['read-tree', '--reset', restored], onTree(start)),
  ])
  const run: Run = { ...start, refs, baseTree }
  await repairEngineRepository(run)
  const { tree, embedded } = await capture(run, null)
  if (tree !== restored)
    throw new WorkspaceError('worktree_moved', 'The files are no longer those of the checkpoint.')
  return workspaceIn(run, { tree, embedded })
}

/** A run whose index holds a tree, and what of its folders are repositories of their own. */
const workspaceIn = (run: Run, at: { tree: string; embedded: string[] }): Workspace => {
  let indexed: string | null = at.tree
  let { embedded } = at
  return {
    tree: run.tree,
    base: run.base,
    baseTree: run.baseTree,
    gitDirectory: run.trusted,
    capture: async () => {
      const known = indexed
      indexed = null
      const captured = await capture(run, known)
      embedded = captured.embedded
      indexed = captured.tree
      return captured
    },
    stamps: () => stampFiles(run),
    repairEngineRepository: () => repairEngineRepository(run),
    reset: async (tree) => {
      indexed = null
      await reset(run, tree, embedded)
      indexed = tree
    },
    checkpoint: (tree) => checkpoint(run, tree),
    save: async (signal) => {
      indexed = null
      const leaving = { ...run, signal }
      const { tree } = await capture(leaving, null)
      return { tree, ...(await checkpoint(leaving, tree)) }
    },
    squash: (input) => squash(run, input),
    cleanCheckout: (commit, directory) => cleanCheckout(run, commit, directory),
    changedPaths: (commit) => changedPaths(run, commit),
    reorderedPaths: (commit) => reorderedPaths(run, commit),
    files: (commit) => treeFiles({ gitDir: run.trusted, signal: run.signal }, commit),
    writePatch: (commit, file) => writePatch(run, commit, file),
    close: async () => {
      await removeTree(run.tree)
      await removeTree(dirname(run.trusted))
    },
  }
}
