import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { workBranch } from './engine-repository.ts'
import { git } from './git.ts'
import { onObjects, type Run } from './run-folder.ts'
import { writeSkeleton } from './skeleton.ts'

/**
 * Checks a commit out into a new folder with a repository of its own, on a branch, with the tags and branches that the
 * base repository had. Its new objects are copies, so nothing done there reaches ours. Throws EEXIST when there is a folder.
 */
export const cleanCheckout = async (run: Run, commit: string, directory: string): Promise<void> => {
  await mkdir(directory)
  const gitDir = join(directory, '.git')
  await writeSkeleton(gitDir, {
    head: workBranch,
    nameLength: run.base.length,
    alternates: [join(run.mirror, 'objects')],
    packedRefs: run.refs,
    shallow: run.shallow,
    bare: false,
  })
  await writeFile(join(gitDir, workBranch), `${commit}\n`)
  if (commit !== run.base)
    await git(['pack-objects', '--quiet', '--revs', join(gitDir, 'objects', 'pack', 'pack')], {
      ...onObjects(run),
      objects: join(gitDir, 'objects'),
      input: `${commit}\n^${run.base}\n`,
    })
  await git(['read-tree', '-u', '--reset', commit], {
    gitDir,
    workTree: directory,
    index: join(gitDir, 'index'),
    cwd: directory,
    signal: run.signal,
  })
}
