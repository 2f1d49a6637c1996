import { mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { WorkspaceError } from './failure.ts'
import { GitError, git, gitWord } from './git.ts'
import { onObjects, type Run, type RunStart } from './run-folder.ts'

const ref = 'refs/gatehouse/checkpoint'

/** Work in progress: a commit on the base, and a file with the objects that the base lacks (null when it lacks none). */
export type Checkpoint = { commit: string; bundle: string | null }

/** A fixed moment, so that the same work always has the same name. */
const moment = '946684800 +0000'

/** Commits a tree on the base under a private ref and writes the bundle beside our repository. Repeating it is harmless. */
export const checkpoint = async (run: Run, tree: string): Promise<Checkpoint> => {
  if (tree === run.baseTree) return { commit: run.base, bundle: null }
  const commit = await gitWord(['commit-tree', '-p', run.base, tree], {
    ...onObjects(run),
    input: 'Gatehouse checkpoint\n',
    env: { GIT_AUTHOR_DATE: moment, GIT_COMMITTER_DATE: moment },
  })
  await mkdir(dirname(join(run.trusted, ref)), { recursive: true })
  await writeFile(join(run.trusted, ref), `${commit}\n`)
  const bundle = join(dirname(run.trusted), 'checkpoint.bundle')
  // One that was interrupted may have left it, and nobody else writes here.
  await rm(`${bundle}.lock`, { force: true })
  await git(['bundle', 'create', '--quiet', bundle, ref, `^${run.base}`], onObjects(run))
  return { commit, bundle }
}

const damaged = (detail: string): WorkspaceError =>
  new WorkspaceError('checkpoint_damaged', `The checkpoint cannot be restored: ${detail}`)

/** Takes a checkpoint's objects into our repository and returns its tree. Throws `checkpoint_damaged` unless it is a commit on the base. */
export const restoreCheckpoint = async (run: RunStart, { commit, bundle }: Checkpoint): Promise<string> => {
  try {
    if (bundle !== null) {
      const listed = await gitWord(['bundle', 'unbundle', bundle], onObjects(run))
      if (!listed.split('\n').includes(`${commit} ${ref}`)) throw damaged('the bundle holds another commit.')
    }
    const text = (await git(['cat-file', 'commit', commit], onObjects(run))).stdout.toString('latin1')
    const [, tree, parent] = /^tree (\w+)\n(?:parent (\w+)\n)?/.exec(text) ?? []
    if (tree === undefined || (commit !== run.base && parent !== run.base))
      throw damaged('it does not build on this base.')
    return tree
  } catch (error) {
    if (error instanceof GitError && error.kind === 'exit') throw damaged(error.stderr)
    throw error
  }
}
