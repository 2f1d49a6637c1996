import { copyFile, stat, utimes } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { limits } from '../limits.ts'
import { GitError, type GitOptions, git, gitWord, records } from './git.ts'
import { showPath } from './path-text.ts'
import type { Repository } from './repository-address.ts'

/** Paths of a working tree with what no commit holds; of untracked files the folder, where all in it are. */
export type Uncommitted = { changed: string[]; untracked: string[] }

type Source = { tree: string; gitDir: string; index: string }

/** Where a repository has its working tree and the index of that; null when it has no such tree. */
const findTree = async (path: string, limit: GitOptions): Promise<Source | null> => {
  if (!(await stat(path).catch(() => null))?.isDirectory()) return null
  const wanted = ['--show-toplevel', '--absolute-git-dir', '--git-path', 'index']
  const found = await git(['rev-parse', '--path-format=absolute', ...wanted], {
    ...{ ...limit, cwd: path, allow: [0, 128] },
  })
  const [tree, gitDir, index] = found.stdout.toString('utf8').split('\n')
  return found.exitCode === 0 && tree && gitDir && index ? { tree, gitDir, index } : null
}

/** A copy that is no younger than the index, so that git looks again at what was written in the same moment. */
const copyIndex = async (from: string, to: string): Promise<void> => {
  const { mtimeMs } = await stat(from)
  await copyFile(from, to)
  const seconds = Math.floor(mtimeMs) / 1000
  await utimes(to, seconds, seconds)
}

/** How the repository compares files; nothing else of its configuration is taken over, and none of it names a program. */
const compared = /^core\.(filemode|symlinks|ignorecase|trustctime|checkstat|autocrlf|eol)$/

const comparison = async ({ gitDir }: Source, limit: GitOptions): Promise<string[]> => {
  const listed = await git(['config', '--local', '-z', '--get-regexp', compared.source], {
    ...{ ...limit, gitDir, allow: [0, 1] },
  })
  return records(listed.stdout).flatMap((record) => {
    const [name = '', value] = record.toString('utf8').split('\n')
    return compared.test(name) && value !== undefined ? ['-c', `${name}=${value}`] : []
  })
}

/** Files that name what the user does not want to see, beside those in the tree. */
const ignoreFiles = async ({ gitDir }: Source, limit: GitOptions): Promise<string[]> => {
  const home = process.env.HOME ?? homedir()
  const own = await gitWord(
    ['config', '--file', join(home, '.gitconfig'), '--type=path', '--get', 'core.excludesFile'],
    { ...limit, allow: [0, 1, 128], env: { HOME: home } },
  )
  const usual = join(process.env.XDG_CONFIG_HOME ?? join(home, '.config'), 'git', 'ignore')
  const common = await gitWord(['rev-parse', '--path-format=absolute', '--git-common-dir'], {
    ...{ ...limit, gitDir },
  })
  const files = [join(common, 'info', 'exclude'), own === '' ? usual : own]
  const there = await Promise.all(files.map((file) => stat(file).catch(() => null)))
  return files.filter((_, index) => there[index]?.isFile()).map((file) => `--exclude-from=${file}`)
}

const look = async (
  source: Source,
  mirror: string,
  scratch: string,
  limit: GitOptions,
): Promise<Uncommitted> => {
  await copyIndex(source.index, scratch)
  const ours = { ...limit, gitDir: mirror, workTree: source.tree, index: scratch, cwd: source.tree }
  const [options, ignored] = await Promise.all([comparison(source, limit), ignoreFiles(source, limit)])
  const status = [
    'status',
    '--porcelain',
    '-z',
    '--no-renames',
    '--untracked-files=no',
    '--ignore-submodules=all',
  ]
  const others = ['ls-files', '-z', '--others', '--directory', '--no-empty-directory']
  const [changed, untracked] = await Promise.all([
    git([...options, ...status], ours),
    git([...options, ...others, '--exclude-per-directory=.gitignore', ...ignored], ours),
  ])
  return {
    changed: records(changed.stdout).map((record) => showPath(record.subarray(3))),
    untracked: records(untracked.stdout).map(showPath),
  }
}

const count = (paths: readonly string[], one: string, more: string): string[] =>
  paths.length === 0 ? [] : [`${paths.length} ${paths.length === 1 ? one : more}`]

/** What a person has to know of the files that a session leaves out, in a sentence; null when there are none. Pure. */
export const uncommittedWarning = (
  { changed, untracked }: Uncommitted,
  where: { display: string; commit: string },
): string | null => {
  const paths = [...changed, ...untracked]
  if (paths.length === 0) return null
  const counts = [
    ...count(changed, 'changed file', 'changed files'),
    ...count(untracked, 'untracked file or folder', 'untracked files and folders'),
  ].join(' and ')
  const named = paths.slice(0, limits.uncommitted.named).join(', ')
  const more = paths.length > limits.uncommitted.named ? ', …' : ''
  return `The session works on commit ${where.commit.slice(0, 12)} alone: ${where.display} has ${counts} that no commit holds (${named}${more}).`
}

/**
 * Looks for uncommitted work in a path repository of which there is a mirror, and says in sentences what a session leaves
 * out. The repository is only read: its index is copied to `scratch`, and git runs with the mirror's configuration, which
 * has no hooks, filters or monitors. Gives up after `limits.uncommitted.ms`, and says that. Throws GitError on abort.
 */
export const uncommittedWarnings = async (options: {
  repository: Repository
  mirror: string
  commit: string
  /** A file of the caller's that is overwritten. */
  scratch: string
  signal?: AbortSignal | undefined
}): Promise<string[]> => {
  const { repository, mirror, commit, scratch, signal } = options
  if (repository.kind !== 'local') return []
  const { display } = repository
  try {
    const limit = { signal, timeoutMs: limits.uncommitted.ms }
    const source = await findTree(repository.url, limit)
    if (source === null) return []
    const warning = uncommittedWarning(await look(source, mirror, scratch, limit), { display, commit })
    return warning === null ? [] : [warning.slice(0, limits.reason)]
  } catch (error) {
    if (signal?.aborted) throw error
    const why = error instanceof GitError && error.kind === 'timeout' ? ' in time' : ''
    return [
      `The session works on commit ${commit.slice(0, 12)} alone; whether ${display} has uncommitted work could not be told${why}.`,
    ]
  }
}
