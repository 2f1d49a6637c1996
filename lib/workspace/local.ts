import { realpath, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { git } from './git.ts'

/** Where a path repository keeps its refs and its objects, also for one of its linked worktrees. */
export type LocalPlaces = { gitDir: string; objects: string }

const lines = (output: Buffer): string[] => output.toString('utf8').split('\n')

const isFolder = async (path: string): Promise<boolean> =>
  (await stat(path).catch(() => null))?.isDirectory() ?? false

/** Looks at a folder itself and at none above it; null when it is no repository. */
export const locate = async (path: string, signal: AbortSignal | undefined): Promise<LocalPlaces | null> => {
  if (!(await isFolder(path))) return null
  const found = await git(
    ['rev-parse', '--path-format=absolute', '--git-common-dir', '--git-path', 'objects'],
    { cwd: path, env: { GIT_CEILING_DIRECTORIES: dirname(path) }, allow: [0, 128], signal },
  )
  const [gitDir, objects] = lines(found.stdout)
  return found.exitCode === 0 && gitDir && objects ? { gitDir, objects } : null
}

/** The address of the repository that a path lies inside of; null when it lies in none, or is one itself. */
export const repositoryAround = async (
  path: string,
  signal: AbortSignal | undefined,
): Promise<string | null> => {
  const real = await realpath(path).catch(() => path)
  const cwd = (await isFolder(real)) ? real : dirname(real)
  for (const wanted of ['--show-toplevel', '--absolute-git-dir']) {
    const found = await git(['rev-parse', wanted], { cwd, allow: [0, 128], signal })
    const [folder] = lines(found.stdout)
    if (found.exitCode !== 0 || !folder) continue
    return real === folder || join(real, '.git') === folder ? null : folder
  }
  return null
}
