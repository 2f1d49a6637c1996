import { join, resolve } from 'node:path'
import { type Checkpoint, restoreCheckpoint } from './checkpoint.ts'
import { prepareFolder, type RunStart } from './run-folder.ts'
import { readShallow, writeSkeleton } from './skeleton.ts'
import { type SquashInput, squash } from './squash.ts'

export type OpenOptions = {
  /** A private folder of this run; what an earlier run left there is removed. */
  run: string
  /** Where the tree is made; in `run` when it is not said. */
  tree?: string
  mirror: string
  /** A full commit of the mirror. */
  base: string
  /** Earlier work to go on with; it shows as uncommitted changes on the base. */
  checkpoint?: Checkpoint
  signal?: AbortSignal
}

/** The repository that we believe, with the saved work in it and no file checked out: all that a delivery needs. */
export type Trusted = {
  base: string
  /** Our bare repository, for delivery; never to be shown to an engine. */
  gitDirectory: string
  squash(input: SquashInput): Promise<string>
}

/** Makes the folder and our repository in it; what stays where a run before is adopted is its engine's. */
export const createTrusted = async (options: OpenOptions, adopts = false): Promise<RunStart> => {
  const root = resolve(options.run)
  const mirror = resolve(options.mirror)
  const tree = resolve(options.tree ?? join(root, 'tree'))
  const kept = adopts ? { names: ['engine.git', 'tree'], tree: true } : { names: [], tree: false }
  const [shallow] = await Promise.all([readShallow(mirror), prepareFolder(root, tree, kept)])
  const start: RunStart = {
    trusted: join(root, 'trusted.git'),
    index: join(root, 'index'),
    engine: join(root, 'engine.git'),
    tree,
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
 * Our repository with the saved work. Costs what the work weighs, not what the base does. Throws WorkspaceError as
 * `openWorkspace` does.
 */
export const openTrusted = async (options: OpenOptions): Promise<Trusted> => {
  const start = await createTrusted(options)
  if (options.checkpoint !== undefined) await restoreCheckpoint(start, options.checkpoint)
  return { base: start.base, gitDirectory: start.trusted, squash: (input) => squash(start, input) }
}
