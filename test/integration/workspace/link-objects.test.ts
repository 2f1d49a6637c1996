import { execFileSync } from 'node:child_process'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { resolveBase } from '../../../lib/workspace/base.ts'
import { fetchMirror } from '../../../lib/workspace/mirror.ts'
import { openWorkspace } from '../../../lib/workspace/workspace.ts'
import { git, makeRepository, temporaryFolder, writeFiles } from '../../repositories.ts'
import { contents, good, localRepository, mirrorOf } from './support.ts'

const objectsOf = (folder: string) => join(folder, 'objects')

/** The files of objects of a repository, by their place in it. */
const files = (objects: string): Map<string, number> => {
  const entries = readdirSync(objects, { withFileTypes: true, recursive: true })
  const found = entries.filter((entry) => entry.isFile() && !entry.parentPath.endsWith('/info'))
  return new Map(
    found.map((entry) => {
      const path = join(entry.parentPath, entry.name)
      return [path.slice(objects.length + 1), statSync(path).ino]
    }),
  )
}

/** Everything that a ref reaches is there, content included. */
const expectWhole = (mirror: string): void => {
  expect(git(mirror, 'rev-list', '--objects', '--all', '--quiet')).toBe('')
  expect(git(mirror, 'cat-file', '--batch-all-objects', '--batch')).not.toContain(' missing')
}

/** A repository with one pack and some loose objects. */
const packed = () => {
  const repository = makeRepository()
  repository.git('gc', '--quiet')
  repository.commit({ 'a.txt': 'a' })
  return repository
}

test('the first mirror of a path repository shares its files of objects', async () => {
  const repository = packed()
  const source = objectsOf(join(repository.directory, '.git'))
  const mirror = await mirrorOf(repository.directory)
  expect(files(objectsOf(mirror)).size).toBeGreaterThan(4)
  for (const [file, inode] of files(objectsOf(mirror))) expect(files(source).get(file)).toBe(inode)
  expectWhole(mirror)
})

test('nothing that is done with a mirror changes a file of the repository, and its gc takes nothing from the mirror', async () => {
  const repository = packed()
  const home = temporaryFolder()
  const mirror = await mirrorOf(repository.directory, home)
  const before = contents(repository.directory)
  const base = good(await resolveBase(mirror, null)).commit
  const workspace = await openWorkspace({ run: join(home, 'run'), mirror, base })
  // New content, and content that the repository has already.
  writeFiles(workspace.tree, { 'new.txt': 'new', 'again.txt': 'a' })
  await workspace.checkpoint((await workspace.capture()).tree)
  expect(contents(repository.directory)).toEqual(before)

  repository.git('checkout', '--quiet', '--orphan', 'other')
  repository.git('commit', '--quiet', '--message', 'Other')
  repository.git('branch', '-D', 'main')
  repository.git('reflog', 'expire', '--expire=now', '--all')
  repository.git('gc', '--quiet', '--prune=now')
  expectWhole(mirror)
  const next = await mirrorOf(repository.directory, home)
  expect(git(next, 'rev-parse', 'refs/heads/other')).toBe(repository.git('rev-parse', 'HEAD'))
})

test.each<[string, (path: string, folder: string) => string]>([
  [
    'a history that is cut',
    (path, folder) => {
      git('/', 'clone', '--quiet', '--depth=1', `file://${path}`, join(folder, 'cut'))
      return join(folder, 'cut')
    },
  ],
  [
    'objects that are borrowed',
    (path, folder) => {
      git('/', 'clone', '--quiet', '--shared', path, join(folder, 'shared'))
      git(join(folder, 'shared'), '-c', 'user.name=A', 'commit', '--quiet', '--allow-empty', '-m', 'one more')
      return join(folder, 'shared')
    },
  ],
])('where linking can’t be, the objects are copied: %s', async (_, make) => {
  const repository = packed()
  const path = make(repository.directory, temporaryFolder())
  const mirror = await mirrorOf(path)
  const inodes = new Set(files(objectsOf(join(path, '.git'))).values())
  expect([...files(objectsOf(mirror)).values()].some((inode) => inodes.has(inode))).toBe(false)
  expect(git(mirror, 'rev-parse', 'refs/gatehouse/head')).toBe(git(path, 'rev-parse', 'HEAD'))
  expectWhole(mirror)
})

test.skipIf(process.getuid?.() !== 0)('a file that belongs to somebody else is copied', async () => {
  const repository = packed()
  execFileSync('chown', ['-R', '65534:65534', repository.directory])
  const mirror = await mirrorOf(repository.directory)
  const inodes = new Set(files(objectsOf(join(repository.directory, '.git'))).values())
  expect([...files(objectsOf(mirror)).values()].some((inode) => inodes.has(inode))).toBe(false)
  expect(git(mirror, 'rev-parse', 'refs/gatehouse/head')).toBe(git(mirror, 'rev-parse', 'refs/heads/main'))
})

test('an address inside a repository is answered with the address of that repository', async () => {
  const { directory } = makeRepository({ files: { 'deep/er/a.txt': 'a' } })
  for (const inside of ['deep', 'deep/er', 'deep/er/a.txt']) {
    const seen = await fetchMirror({
      home: temporaryFolder(),
      repository: localRepository(join(directory, inside)),
    })
    expect(seen).toMatchObject({ ok: false, problem: 'not_a_repository' })
    expect(seen).toHaveProperty('detail', expect.stringContaining(`inside the repository ${directory};`))
  }
  const below = localRepository(join(directory, '.git', 'refs'))
  expect(await fetchMirror({ home: temporaryFolder(), repository: below })).toMatchObject({
    detail: expect.stringContaining(`inside the repository ${join(directory, '.git')};`),
  })
  const none = localRepository(temporaryFolder())
  expect(await fetchMirror({ home: temporaryFolder(), repository: none })).toMatchObject({
    detail: expect.stringContaining('cannot be read as a git repository'),
  })
})
