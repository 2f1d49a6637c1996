import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { wereTouched } from '../../../lib/workspace/file-stamps.ts'
import { makeRepository, writeFiles } from '../../repositories.ts'
import { open } from './support.ts'

const files = {
  'a.txt': 'one\n',
  'dir/b.txt': 'two\n',
  link: { link: 'a.txt' },
  '.gitignore': 'out/\n*.log\n',
}

/** Whether something that is done in the tree counts as writing to the work. */
const touchedBy = async (work: (tree: string) => void) => {
  const { workspace } = await open(files)
  writeFiles(workspace.tree, { untracked: 'new\n', 'out/built': 'built\n' })
  const before = await workspace.stamps()
  work(workspace.tree)
  return wereTouched(before, await workspace.stamps())
}

const at =
  (name: string, work: (path: string) => void) =>
  (tree: string): void =>
    work(join(tree, name))

const sh =
  (line: string) =>
  (tree: string): void =>
    void execFileSync('sh', ['-c', line], { cwd: tree })

test.each<[string, (tree: string) => void]>([
  ['a changed file', at('a.txt', (path) => writeFileSync(path, 'other\n'))],
  [
    'an edit that was taken back',
    at('a.txt', (path) => {
      writeFileSync(path, 'x\n')
      writeFileSync(path, 'one\n')
    }),
  ],
  ['the same bytes once more', at('a.txt', (path) => writeFileSync(path, readFileSync(path)))],
  ['the same bytes in an untracked file', at('untracked', (path) => writeFileSync(path, 'new\n'))],
  ['touch -d with an old date', sh('touch -d 2001-01-01 a.txt')],
  [
    'an edit whose times were put back',
    at('a.txt', (path) => {
      writeFileSync(path, 'ONE\n')
      writeFileSync(path, 'one\n')
      utimesSync(path, 1, 1)
    }),
  ],
  [
    'times, size and content put back',
    sh('touch -r a.txt out/r; cp a.txt out/c; cp out/c a.txt; touch -r out/r a.txt'),
  ],
  [
    'a file that was deleted and restored',
    at('a.txt', (path) => {
      rmSync(path)
      writeFileSync(path, 'one\n')
    }),
  ],
  ['git putting an edit back', sh('echo x >> a.txt; git checkout -q -- a.txt')],
  ['a file moved away and back', sh('mv a.txt out/; mv out/a.txt a.txt')],
  [
    'a file in whose place an older one with the same bytes was put',
    sh('mv out/built dir/x; mv dir/b.txt out/; printf "two\\n" > dir/x; mv dir/x dir/b.txt'),
  ],
  ['a deleted file', at('a.txt', (path) => rmSync(path))],
  ['a new file', at('c.txt', (path) => writeFileSync(path, ''))],
  ['another mode', at('a.txt', (path) => chmodSync(path, 0o755))],
  [
    'a link made anew',
    at('link', (path) => {
      rmSync(path)
      symlinkSync('a.txt', path)
    }),
  ],
  ['another name for a file', sh('ln a.txt out/hard')],
  ['a repository inside', (tree) => void makeRepository({ directory: join(tree, 'inner') })],
  ['an ignore rule', at('.gitignore', (path) => writeFileSync(path, 'out/\n*.log\nuntracked\n'))],
])('writes to the work are seen: %s', async (_, work) => {
  expect(await touchedBy(work)).toBe(true)
})

test.each<[string, (tree: string) => void]>([
  ['nothing at all', () => {}],
  ['reading', sh('cat a.txt dir/b.txt link untracked; grep -r one .; ls -lR')],
  ['git that only looks', sh('git status; git diff; git log --oneline; git add -A; git reset -q')],
  [
    'an ignored file that comes and goes',
    sh('echo x > x.log; mkdir -p out/deep; echo y > out/deep/y; rm -r x.log out'),
  ],
  ['an ignored file that stays', sh('echo x > x.log')],
  ['an empty folder', at('empty', (path) => mkdirSync(path))],
])('what is no write to the work is not: %s', async (_, work) => {
  expect(await touchedBy(work)).toBe(false)
})

test('our own capture and checkpoint write to nothing', async () => {
  const { workspace } = await open(files)
  writeFiles(workspace.tree, { untracked: 'new\n', 'a.txt': 'changed\n' })
  const before = await workspace.stamps()
  const { tree } = await workspace.capture()
  await workspace.checkpoint(tree)
  await workspace.repairEngineRepository()
  expect(wereTouched(before, await workspace.stamps())).toBe(false)
})

test('names that are no text, and many files', async () => {
  const { workspace } = await open(files)
  const odd = Buffer.concat([Buffer.from(`${workspace.tree}/`), Buffer.from([0x62, 0xff, 0x0a])])
  writeFileSync(odd, 'x')
  for (let index = 0; index < 2500; index++) writeFileSync(join(workspace.tree, `f${index}`), '')
  const before = await workspace.stamps()
  expect(before.size).toBe(4 + 1 + 2500)
  expect(wereTouched(before, await workspace.stamps())).toBe(false)
  renameSync(odd, Buffer.concat([odd, Buffer.from('2')]))
  const moved = await workspace.stamps()
  expect(wereTouched(before, moved)).toBe(true)
  linkSync(join(workspace.tree, 'f1'), join(workspace.tree, 'g1'))
  expect(wereTouched(moved, await workspace.stamps())).toBe(true)
})

test('a replaced tree is refused, so that no link leads us to files of others', async () => {
  const { workspace } = await open(files)
  rmSync(workspace.tree, { recursive: true })
  symlinkSync('/etc', workspace.tree)
  await expect(workspace.stamps()).rejects.toMatchObject({ problem: 'worktree_replaced' })
})
