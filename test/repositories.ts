import { type ExecFileSyncOptions, execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { onTestFinished } from 'vitest'

const remove = (path: string): void => rmSync(path, { recursive: true, force: true, maxRetries: 3 })

/** A fresh folder, removed when the test (or, outside of one, the process) ends. */
export const temporaryFolder = (): string => {
  const path = realpathSync(mkdtempSync(join(tmpdir(), 'gatehouse-test-')))
  try {
    onTestFinished(() => remove(path))
  } catch {
    process.once('exit', () => remove(path))
  }
  return path
}

/** What a person's git would see: no config of this machine, a fixed name and date. */
const environment = (extra: Record<string, string>): Record<string, string> => ({
  PATH: process.env.PATH ?? '',
  HOME: '/dev/null',
  LANG: 'C',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_AUTHOR_NAME: 'Ada',
  GIT_AUTHOR_EMAIL: 'ada@example.com',
  GIT_COMMITTER_NAME: 'Ada',
  GIT_COMMITTER_EMAIL: 'ada@example.com',
  GIT_AUTHOR_DATE: '1700000000 +0000',
  GIT_COMMITTER_DATE: '1700000000 +0000',
  ...extra,
})

/** Runs git in a folder as its user would and returns its output without the last newline. Throws when it fails. */
export const git = (cwd: string, ...args: string[]): string => gitWith(cwd, {}, ...args)

/** `git` with further variables or an input. */
export const gitWith = (
  cwd: string,
  options: { env?: Record<string, string>; input?: string | Buffer },
  ...args: string[]
): string => {
  const run: ExecFileSyncOptions = {
    cwd,
    env: environment(options.env ?? {}),
    stdio: ['pipe', 'pipe', 'pipe'],
    maxBuffer: 64 * 1024 * 1024,
    ...(options.input === undefined ? {} : { input: options.input }),
  }
  return execFileSync('git', args, run).toString().replace(/\n$/, '')
}

/** A file's content, or an executable, or a symbolic link. */
export type FileSpec = string | Buffer | { content: string | Buffer; executable: true } | { link: string }

/** Writes files into a folder, making the folders on their way. */
export const writeFiles = (directory: string, files: Record<string, FileSpec>): void => {
  for (const [name, spec] of Object.entries(files)) {
    const path = join(directory, name)
    mkdirSync(dirname(path), { recursive: true })
    if (typeof spec === 'string' || Buffer.isBuffer(spec)) writeFileSync(path, spec)
    else if ('link' in spec) symlinkSync(spec.link, path)
    else {
      writeFileSync(path, spec.content)
      chmodSync(path, 0o755)
    }
  }
}

export type TestRepository = {
  directory: string
  /** The commit of HEAD; empty for a repository without commits. */
  head: string
  git(...args: string[]): string
  /** Writes files and commits everything; returns the commit. */
  commit(files: Record<string, FileSpec>, message?: string): string
}

/** A real repository on the branch `main` with one commit of `files`; none when `files` is null. */
export const makeRepository = (
  options: {
    files?: Record<string, FileSpec> | null
    directory?: string
    bare?: boolean
    format?: string
  } = {},
): TestRepository => {
  const work = options.directory ?? join(temporaryFolder(), 'repository')
  mkdirSync(work, { recursive: true })
  git(work, 'init', '--quiet', '--initial-branch=main', `--object-format=${options.format ?? 'sha1'}`)
  const commit = (files: Record<string, FileSpec>, message = 'Change'): string => {
    writeFiles(work, files)
    git(work, 'add', '--all')
    git(work, 'commit', '--quiet', '--allow-empty', '--message', message)
    return git(work, 'rev-parse', 'HEAD')
  }
  const files = options.files === undefined ? { 'README.md': 'hello\n' } : options.files
  const head = files === null ? '' : commit(files, 'Begin')
  if (options.bare !== true) return { directory: work, head, git: (...args) => git(work, ...args), commit }
  const bare = `${work}.git`
  git(dirname(work), 'clone', '--quiet', '--bare', work, bare)
  return { directory: bare, head, git: (...args) => git(bare, ...args), commit }
}
