import { existsSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { uncommittedWarning, uncommittedWarnings } from '../../../lib/workspace/uncommitted.ts'
import {
  type FileSpec,
  git,
  makeRepository,
  type TestRepository,
  temporaryFolder,
  writeFiles,
} from '../../repositories.ts'
import { contents, localRepository, mirrorOf } from './support.ts'

const look = async (path: string, signal?: AbortSignal): Promise<string[]> => {
  const mirror = await mirrorOf(path)
  const commit = git(mirror, 'rev-parse', 'refs/gatehouse/head')
  const scratch = join(temporaryFolder(), 'index')
  return uncommittedWarnings({ repository: localRepository(path), mirror, commit, scratch, signal })
}

const files = { 'a.txt': 'a\n', 'b.txt': 'b\n', 'd/c.txt': 'c\n', '.gitignore': 'ignored\n' }

test('changed, staged, deleted and untracked files of the source are told, and the commit that counts', async () => {
  const { directory, head } = makeRepository({ files })
  writeFiles(directory, { 'a.txt': 'A\n', 'staged.txt': 's\n', 'new/deep/er.txt': 'n\n', ignored: 'i\n' })
  git(directory, 'add', 'staged.txt')
  git(directory, 'rm', '--quiet', 'd/c.txt')
  expect(await look(directory)).toEqual([
    `The session works on commit ${head.slice(0, 12)} alone: ${directory} has 3 changed files and 1 untracked file or folder that no commit holds (a.txt, d/c.txt, staged.txt, new/).`,
  ])
})

test.each<[string, (repository: TestRepository) => void]>([
  ['nothing was changed', () => {}],
  ['a file was only touched', ({ directory }) => utimesSync(join(directory, 'a.txt'), 1, 1)],
  ['files are ignored', ({ directory }) => writeFiles(directory, { ignored: 'i' })],
  [
    'files are ignored by the user alone',
    ({ directory }) => writeFiles(directory, { '.git/info/exclude': '*.log\n', 'x.log': 'x' }),
  ],
  [
    'modes do not count there',
    ({ git: run }) => {
      run('config', 'core.fileMode', 'false')
      run('update-index', '--chmod=+x', 'a.txt')
      run('commit', '--quiet', '--message', 'x')
    },
  ],
])('nothing is said where %s', async (_, change) => {
  const repository = makeRepository({ files })
  change(repository)
  expect(await look(repository.directory)).toEqual([])
})

test('nothing is said of a repository without a working tree', async () => {
  expect(await look(makeRepository({ bare: true }).directory)).toEqual([])
})

test('a linked worktree is looked at by its own index and commit', async () => {
  const main = makeRepository({ files })
  const linked = join(temporaryFolder(), 'linked')
  main.git('worktree', 'add', '--quiet', '-b', 'side', linked)
  writeFiles(main.directory, { 'a.txt': 'A\n' })
  expect(await look(linked)).toEqual([])
  writeFiles(linked, { 'b.txt': 'B\n' })
  expect(await look(linked)).toEqual([expect.stringContaining('1 changed file that no commit holds (b.txt)')])
})

test('nothing of the source is run, written or locked', async () => {
  const repository = makeRepository({
    files: { ...files, '.gitattributes': '*.txt filter=evil diff=evil\n' },
  })
  const { directory } = repository
  const mark = join(temporaryFolder(), 'ran')
  const evil: FileSpec = { content: `#!/bin/sh\necho "$0" >> ${mark}\ncat\n`, executable: true }
  const program = join(temporaryFolder(), 'evil')
  writeFiles('/', { [program]: evil })
  for (const hook of ['post-index-change', 'fsmonitor-watchman', 'pre-auto-gc'])
    writeFiles(join(directory, '.git/hooks'), { [hook]: evil })
  for (const key of ['filter.evil.clean', 'filter.evil.process', 'core.fsmonitor', 'diff.evil.textconv'])
    git(directory, 'config', key, program)
  git(directory, 'config', 'filter.evil.required', 'true')
  writeFileSync(join(directory, 'a.txt'), 'A\n')
  utimesSync(join(directory, 'b.txt'), 1, 1)
  writeFileSync(join(directory, '.git', 'index.lock'), '')
  const before = contents(directory)
  expect(await look(directory)).toEqual([expect.stringContaining('(a.txt)')])
  expect(contents(directory)).toEqual(before)
  expect(existsSync(mark)).toBe(false)
})

test('what can’t be told is said to be so', async () => {
  const { directory, head } = makeRepository({ files })
  writeFileSync(join(directory, '.git', 'index'), 'no index')
  expect(await look(directory)).toEqual([
    `The session works on commit ${head.slice(0, 12)} alone; whether ${directory} has uncommitted work could not be told.`,
  ])
})

test('of many paths a few are named', () => {
  const changed = Array.from({ length: 9 }, (_, index) => `f${index}`)
  const said = uncommittedWarning({ changed, untracked: [] }, { display: '/r', commit: 'a'.repeat(40) })
  expect(said).toContain('9 changed files that no commit holds (f0, f1, f2, f3, f4, …)')
})
