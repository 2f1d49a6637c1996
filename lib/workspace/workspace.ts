import { copyFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
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
import { type FileStamps, stampFiles } from './file-stamps.ts'
import { git, gitWord } from './git.ts'
import { writePatch } from './patch.ts'
import { removeTree } from './remove-tree.ts'
import { reset } from './reset.ts'
import { onTree, prepareFolder, type Run, type RunStart } from './run-folder.ts'
import { readShallow, writeSkeleton } from './skeleton.ts'
import { type SquashInput, squash } from './squash.ts'
import { type TreeFiles, treeFiles } from './tree-files.ts'

/** One worker run's working tree and the repository that we believe. Functions throw GitError when git itself fails. */
export type Workspace = {
  /** Where engines and checks work. */
  tree: string
  base: string
  /** The base's tree: a captured tree equal to it means that nothing changed. */
  baseTree: string
  /** Our bare repository, for delivery; never to be shown to an engine. */
  gitDirectory: string
  capture(): Promise<Captured>
  /** Before and after an engine's run they tell whether it wrote to any file of the work. */
  stamps(): Promise<FileStamps>
  repairEngineRepository(): Promise<void>
  reset(tree: string): Promise<void>
  checkpoint(tree: string): Promise<Checkpoint>
  /** Captures and saves the files as they stand although the run's own signal has fired; `signal` ends this. */
  save(signal: AbortSignal): Promise<Checkpoint & { tree: string }>
  squash(input: SquashInput): Promise<string>
  cleanCheckout(commit: string, directory: string): Promise<void>
  changedPaths(commit: string): Promise<Changes>
  reorderedPaths(commit: string): Promise<string[]>
  /** All files of a commit, to be read one by one. */
  files(commit: string): Promise<TreeFiles>
  writePatch(commit: string, file: string): Promise<number>
  /** Removes the run's whole folder. */
  close(): Promise<void>
}

export type OpenOptions = {
  /** A private folder of this run; what an earlier run left there is removed. */
  run: string
  mirror: string
  /** A full commit of the mirror. */
  base: string
  /** Earlier work to go on with; it shows as uncommitted changes on the base. */
  checkpoint?: Checkpoint
  signal?: AbortSignal
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

/** Makes the folder and our repository in it. */
const createTrusted = async (options: OpenOptions): Promise<RunStart> => {
  const root = resolve(options.run)
  const mirror = resolve(options.mirror)
  const [shallow] = await Promise.all([readShallow(mirror), prepareFolder(root)])
  const start: RunStart = {
    trusted: join(root, 'trusted.git'),
    index: join(root, 'index'),
    engine: join(root, 'engine.git'),
    tree: join(root, 'tree'),
    mirror,
    base: options.base,
    shallow,
    signal: options.signal,
  }
  await writeSkeleton(start.trusted, {
    head: 'refs/gatehouse/none',
    nameLength: start.base.length,
    alternates: [join(mirror, 'objects')],
    shallow,
  })
  return start
}

/**
 * Makes a run's folder: our repository, the engine's, and the tree checked out at the base or at a checkpoint. Throws
 * WorkspaceError when the folder holds other files or the checkpoint does not restore.
 */
export const openWorkspace = async (options: OpenOptions): Promise<Workspace> => {
  const start = await createTrusted(options)
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
  let indexed: string | null = atBase ? baseTree : restored
  let embedded: string[] = []
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
    close: () => removeTree(resolve(options.run)),
  }
}
