import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { readPath, showPath } from '../../../lib/workspace/path-text.ts'
import { git, makeRepository, writeFiles } from '../../repositories.ts'
import { listTree, open, readBlob } from './support.ts'

const awkward = [
  ' leading and trailing ',
  'quote"\'`$(id);&|',
  'new\nline',
  'tab\there',
  'back\\slash',
  '-rf',
  '--help',
  ':(exclude)magic',
  '*?[x]',
  '#hash',
  '!bang',
  'grün/日本😀.txt',
  'dir with space/deep/file',
  '\u202ebidi',
  'CON',
  'a'.repeat(250),
].map((name) => Buffer.from(name))

test('every awkward name is captured, checked out and shown, bytes that are no UTF-8 included', async () => {
  const { workspace, folder } = await open()
  const names = [...awkward, Buffer.from([0x62, 0xff, 0xfe, 0x2e, 0x63]), Buffer.from([0xc3, 0x28])]
  for (const name of names) {
    const at = name.lastIndexOf(0x2f)
    const inTree = (part: Buffer) => Buffer.concat([Buffer.from(`${workspace.tree}/`), part])
    if (at !== -1) mkdirSync(inTree(name.subarray(0, at)), { recursive: true })
    writeFileSync(inTree(name), name)
  }
  const { tree, unrecorded } = await workspace.capture()
  expect(unrecorded).toEqual([])
  const commit = await workspace.squash({ tree, intent: 'x', sessionId: 's', date: new Date(0) })
  const { paths } = await workspace.changedPaths(commit)
  expect(paths.map((path) => path.path).sort()).toEqual(names.map(showPath).sort())
  const clean = join(folder, 'clean')
  await workspace.cleanCheckout(commit, clean)
  for (const { path } of paths)
    expect(readFileSync(Buffer.concat([Buffer.from(`${clean}/`), readPath(path)]))).toEqual(readPath(path))
})

test('content is captured as it is: line ends, links, modes, empty and large files', async () => {
  const { workspace } = await open({ 'crlf.txt': 'a\r\nb\r\n', 'run.sh': 'x\n' })
  chmodSync(join(workspace.tree, 'run.sh'), 0o755)
  writeFiles(workspace.tree, {
    'new-crlf.txt': 'c\r\n',
    empty: '',
    outside: { link: '/etc/passwd' },
    dangling: { link: 'nowhere' },
    large: Buffer.alloc(3_000_000, 'x'),
  })
  const { tree } = await workspace.capture()
  expect(readBlob(workspace, tree, 'crlf.txt')).toBe('a\r\nb\r')
  expect(readBlob(workspace, tree, 'new-crlf.txt')).toBe('c\r')
  expect(readBlob(workspace, tree, 'outside')).toBe('/etc/passwd')
  const listing = git(workspace.gitDirectory, 'ls-tree', tree)
  expect(listing).toMatch(/^100755 .*\trun\.sh$/m)
  expect(listing).toMatch(/^120000 .*\tdangling$/m)
})

test('ignored files stay out; tracked files that became ignored stay in', async () => {
  const { workspace, engineGit } = await open({ 'kept.log': '1\n', '.gitignore': 'node_modules/\n' })
  writeFiles(workspace.tree, {
    'node_modules/x/index.js': 'x',
    '.gitignore': 'node_modules/\n*.log\n',
    'kept.log': '2\n',
    'new.log': 'no',
    'sub/.gitignore': 'local\n',
    'sub/local': 'no',
    'sub/other': 'yes',
    planted: 'yes',
  })
  writeFiles(engineGit, { 'info/exclude': 'planted\n' })
  const { tree } = await workspace.capture()
  expect(listTree(workspace, tree)).toEqual([
    '.gitignore',
    'kept.log',
    'planted',
    'sub/.gitignore',
    'sub/other',
  ])
  expect(readBlob(workspace, tree, 'kept.log')).toBe('2')
})

test('a path may change between file, folder and link, both ways', async () => {
  const { workspace } = await open({ file: 'f', 'folder/a': 'a', 'moved/b': 'b', link: { link: 'file' } })
  rmSync(join(workspace.tree, 'file'))
  writeFiles(workspace.tree, { 'file/inside': 'x' })
  rmSync(join(workspace.tree, 'folder'), { recursive: true })
  writeFiles(workspace.tree, { folder: 'now a file' })
  renameSync(join(workspace.tree, 'moved'), join(workspace.tree, 'elsewhere'))
  symlinkSync('elsewhere', join(workspace.tree, 'moved'))
  rmSync(join(workspace.tree, 'link'))
  writeFiles(workspace.tree, { link: 'a file' })
  const { tree } = await workspace.capture()
  expect(listTree(workspace, tree)).toEqual(['elsewhere/b', 'file/inside', 'folder', 'link', 'moved'])
  rmSync(join(workspace.tree, 'file'), { recursive: true })
  expect(listTree(workspace, (await workspace.capture()).tree)).not.toContain('file/inside')
})

test('nested repositories are told and not recorded, with or without commits', async () => {
  const { workspace } = await open({ 'src/a.txt': 'a', taken: 'file' })
  makeRepository({ directory: join(workspace.tree, 'vendor/lib'), files: { x: 'x' } })
  makeRepository({ directory: join(workspace.tree, 'empty one'), files: null })
  makeRepository({ directory: join(workspace.tree, 'src'), files: null })
  rmSync(join(workspace.tree, 'taken'))
  makeRepository({ directory: join(workspace.tree, 'taken'), files: { y: 'y' } })
  writeFiles(workspace.tree, { 'src/b.txt': 'b' })
  const { tree, embedded } = await workspace.capture()
  expect(embedded.sort()).toEqual(['empty one', 'taken', 'vendor/lib'])
  expect(listTree(workspace, tree)).toEqual(['src/a.txt', 'src/b.txt'])
  expect(git(workspace.gitDirectory, 'ls-tree', '-r', tree)).not.toContain('160000')
  rmSync(join(workspace.tree, 'vendor/lib/.git'), { recursive: true })
  expect(listTree(workspace, (await workspace.capture()).tree)).toContain('vendor/lib/x')
})

test('pipes and sockets count as absent, also in the place of tracked files, and never block', async () => {
  const { workspace } = await open({ 'was-file': 'x', keep: 'k' })
  rmSync(join(workspace.tree, 'was-file'))
  execFileSync('mkfifo', [join(workspace.tree, 'was-file'), join(workspace.tree, 'pipe')])
  const server = createServer().listen(join(workspace.tree, 'socket'))
  onTestFinished(() => void server.close())
  writeFiles(workspace.tree, { keep: 'changed', added: 'a' })
  const captured = await workspace.capture()
  expect(captured.unrecorded).toEqual([])
  expect(listTree(workspace, captured.tree)).toEqual(['added', 'keep'])
  expect(readBlob(workspace, captured.tree, 'keep')).toBe('changed')
})

test('names that git refuses are told', async () => {
  const { workspace } = await open()
  writeFiles(workspace.tree, { '.GIT/config': 'x', 'git~1': 'x', 'sub/.Git': 'x', fine: 'x' })
  const { tree, unrecorded } = await workspace.capture()
  expect(listTree(workspace, tree)).toEqual(['README.md', 'fine'])
  expect(unrecorded.map(({ path, reason }) => `${reason} ${path}`).sort()).toEqual([
    'name_refused .GIT/config',
    'name_refused git~1',
    'name_refused sub/.Git',
  ])
})

test('a change that keeps size and time is seen', async () => {
  const { workspace } = await open({ a: 'one' })
  await workspace.capture()
  execFileSync(
    'sh',
    [
      '-c',
      'touch -r a /tmp/gatehouse-ref.$$; printf two > a; touch -r /tmp/gatehouse-ref.$$ a; rm /tmp/gatehouse-ref.$$',
    ],
    {
      cwd: workspace.tree,
    },
  )
  expect(readBlob(workspace, (await workspace.capture()).tree, 'a')).toBe('two')
})

test('text attributes of the tree work as in any checkout', async () => {
  const { workspace } = await open({
    '.gitattributes': '* text=auto\n*.bat eol=crlf\n',
    'x.bat': 'a\r\nb\r\n',
  })
  expect(readFileSync(join(workspace.tree, 'x.bat'), 'utf8')).toBe('a\r\nb\r\n')
  expect((await workspace.capture()).tree).toBe(workspace.baseTree)
  writeFiles(workspace.tree, { 'y.bat': 'c\r\n' })
  expect(readBlob(workspace, (await workspace.capture()).tree, 'y.bat')).toBe('c')
})

test('ten thousand files are captured in seconds', async () => {
  const { workspace } = await open()
  for (let i = 0; i < 10_000; i++) {
    if (i % 100 === 0) mkdirSync(join(workspace.tree, `d${i / 100}`))
    writeFileSync(join(workspace.tree, `d${Math.floor(i / 100)}`, `f${i}`), `${i}`)
  }
  const started = performance.now()
  const first = await workspace.capture()
  expect(performance.now() - started).toBeLessThan(15_000)
  expect((await workspace.capture()).tree).toBe(first.tree)
  expect(listTree(workspace, first.tree)).toHaveLength(10_001)
})
