import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { limits } from '../../../lib/limits.ts'
import { resolveBase } from '../../../lib/workspace/base.ts'
import { commitMessage, commitSubject } from '../../../lib/workspace/commit-message.ts'
import { readPatchHead } from '../../../lib/workspace/patch.ts'
import { preflightTree } from '../../../lib/workspace/preflight.ts'
import { openWorkspace } from '../../../lib/workspace/workspace.ts'
import { git, makeRepository, temporaryFolder, writeFiles } from '../../repositories.ts'
import { good, listTree, mirrorOf, open, readBlob } from './support.ts'

const squashed = { intent: 'Do it', sessionId: 'ses_1', date: new Date('2026-01-02T03:04:05Z') }

test('an engine finds a clean worktree on a branch at the base, and can use git in it', async () => {
  const { workspace, base } = await open({ 'a.txt': 'a\n', 'src/b.txt': 'b\n' })
  expect(git(workspace.tree, 'status', '--porcelain')).toBe('')
  expect(git(workspace.tree, 'rev-parse', 'HEAD')).toBe(base)
  expect(git(workspace.tree, 'symbolic-ref', '--short', 'HEAD')).toBe('work')
  writeFiles(workspace.tree, { 'c.txt': 'c\n' })
  git(workspace.tree, 'add', '.')
  git(workspace.tree, 'commit', '-m', 'mine')
  expect(git(workspace.tree, 'log', '--format=%s')).toBe('mine\nBegin')
  expect(git(workspace.tree, 'diff', '--stat', 'origin/main')).toContain('c.txt')
  expect(readBlob(workspace, (await workspace.capture()).tree, 'c.txt')).toBe('c')
})

test('an untouched tree captures as the base itself and needs no bundle', async () => {
  const { workspace, base } = await open()
  const { tree, embedded, unrecorded } = await workspace.capture()
  expect({ tree, embedded, unrecorded }).toEqual({ tree: workspace.baseTree, embedded: [], unrecorded: [] })
  expect(await workspace.checkpoint(tree)).toEqual({ commit: base, bundle: null })
})

test('a commit with an empty tree is a base like any other', async () => {
  const { workspace } = await open({})
  expect((await workspace.capture()).tree).toBe(workspace.baseTree)
  writeFiles(workspace.tree, { a: 'a' })
  const { tree } = await workspace.capture()
  const commit = await workspace.squash({ ...squashed, tree })
  expect((await workspace.changedPaths(commit)).stat).toEqual({ files: 1, insertions: 1, deletions: 0 })
})

test('a checkpoint restores on another machine as uncommitted changes on the base', async () => {
  const { workspace, repository, base, folder } = await open({ 'a.txt': 'a\n', 'gone.txt': 'x\n' })
  writeFiles(workspace.tree, { 'a.txt': 'changed\n', 'new/b.txt': 'b\n' })
  rmSync(join(workspace.tree, 'gone.txt'))
  const { tree } = await workspace.capture()
  const checkpoint = await workspace.checkpoint(tree)
  expect(await workspace.checkpoint(tree)).toEqual(checkpoint)
  const elsewhere = temporaryFolder()
  const mirror = await mirrorOf(repository.directory, elsewhere)
  const restored = await openWorkspace({ run: join(elsewhere, 'run'), mirror, base, checkpoint })
  await workspace.close()
  expect(existsSync(join(folder, 'run'))).toBe(false)
  expect(git(restored.tree, 'rev-parse', 'HEAD')).toBe(base)
  expect(git(restored.tree, 'status', '--porcelain')).toBe(' M a.txt\n D gone.txt\n?? new/')
  expect((await restored.capture()).tree).toBe(tree)
  expect((await restored.checkpoint(tree)).commit).toBe(checkpoint.commit)
})

test('a checkpoint whose files equal the base restores clean', async () => {
  const { workspace, mirror, base, folder } = await open()
  const checkpoint = await workspace.checkpoint(workspace.baseTree)
  const restored = await openWorkspace({ run: join(folder, 'run'), mirror, base, checkpoint })
  expect(git(restored.tree, 'status', '--porcelain')).toBe('')
  expect((await restored.capture()).tree).toBe(restored.baseTree)
})

test('a bundle that is damaged, missing or of other work is told as such', async () => {
  const { workspace, mirror, base, folder } = await open()
  const work = async (text: string) => {
    writeFiles(workspace.tree, { a: text })
    const { tree } = await workspace.capture()
    return workspace.checkpoint(tree)
  }
  const first = await work('1')
  const bundle = join(folder, 'kept')
  writeFileSync(bundle, readFileSync(first.bundle ?? ''))
  const second = await work('2')
  const damaged = join(folder, 'damaged')
  writeFileSync(damaged, readFileSync(bundle).subarray(0, -30))
  for (const checkpoint of [
    { commit: second.commit, bundle },
    { commit: first.commit, bundle: damaged },
    { commit: first.commit, bundle: join(folder, 'missing') },
    { commit: first.commit, bundle: null },
  ])
    await expect(
      openWorkspace({ run: join(folder, 'other'), mirror, base, checkpoint }),
      JSON.stringify(checkpoint),
    ).rejects.toMatchObject({ problem: 'checkpoint_damaged' })
})

test('what an earlier run left goes; a folder of someone else stays', async () => {
  const { workspace, mirror, base, folder } = await open()
  writeFiles(workspace.tree, { left: 'over' })
  const again = await openWorkspace({ run: join(folder, 'run'), mirror, base })
  expect(existsSync(join(again.tree, 'left'))).toBe(false)
  const theirs = join(folder, 'theirs')
  writeFiles(theirs, { precious: '1' })
  await expect(openWorkspace({ run: theirs, mirror, base })).rejects.toMatchObject({
    problem: 'folder_not_ours',
  })
  expect(readFileSync(join(theirs, 'precious'), 'utf8')).toBe('1')
})

test('reset undoes what checks did to files and leaves ignored ones', async () => {
  const { workspace } = await open({ 'a.txt': 'a\n', 'lib/b.txt': 'b\n', '.gitignore': 'cache/\n' })
  writeFiles(workspace.tree, { 'work.txt': 'work\n' })
  const { tree } = await workspace.capture()
  writeFiles(workspace.tree, { 'a.txt': 'x', 'junk/deep/c': 'c', 'cache/d': 'd', junk2: 'x' })
  rmSync(join(workspace.tree, 'lib'), { recursive: true })
  writeFiles(workspace.tree, { lib: { link: '/etc' } })
  rmSync(join(workspace.tree, 'work.txt'))
  mkdirSync(join(workspace.tree, 'work.txt'))
  writeFiles(workspace.tree, { 'work.txt/in': 'x' })
  mkdirSync(join(workspace.tree, 'nested'))
  git(join(workspace.tree, 'nested'), 'init', '--quiet')
  await workspace.reset(tree)
  const after = await workspace.capture()
  expect(after).toEqual({ tree, embedded: [], unrecorded: [] })
  expect(readFileSync(join(workspace.tree, 'a.txt'), 'utf8')).toBe('a\n')
  expect(readFileSync(join(workspace.tree, 'lib/b.txt'), 'utf8')).toBe('b\n')
  expect(existsSync(join(workspace.tree, 'junk'))).toBe(false)
  expect(readFileSync(join(workspace.tree, 'cache/d'), 'utf8')).toBe('d')
  expect(existsSync('/etc/passwd')).toBe(true)
})

test('squash makes exactly one commit on the base, the same each time', async () => {
  const { workspace, base } = await open()
  writeFiles(workspace.tree, { a: 'a' })
  const { tree } = await workspace.capture()
  const commit = await workspace.squash({ ...squashed, tree })
  expect(await workspace.squash({ ...squashed, tree })).toBe(commit)
  expect(git(workspace.gitDirectory, 'cat-file', 'commit', commit)).toBe(
    [
      `tree ${tree}`,
      `parent ${base}`,
      'author Gatehouse <gatehouse@localhost> 1767323045 +0000',
      'committer Gatehouse <gatehouse@localhost> 1767323045 +0000',
      '',
      'Do it',
      '',
      'Gatehouse-Session: ses_1',
    ].join('\n'),
  )
})

test('a subject is one line, no longer than allowed, and never splits a character', () => {
  expect(commitSubject('Fix\r\nthe\t bug\n')).toBe('Fix the bug')
  expect(commitSubject('\n\u2028 ')).toBe('Gatehouse session')
  expect(commitSubject('Fix \u202eevil\u200b\0')).toBe('Fix <U+202E>evil<U+200B><U+0000>')
  expect(commitSubject('a'.repeat(72))).toBe('a'.repeat(72))
  const family = '👨‍👩‍👧‍👦'
  for (const intent of [family.repeat(30), `${'a'.repeat(70)}${family}`, `x${'\ud800'.repeat(90)}`]) {
    const subject = commitSubject(intent)
    expect([...subject].length).toBeLessThanOrEqual(limits.subject)
    expect(subject.isWellFormed()).toBe(true)
    expect(subject.replace(/…$/, '').replaceAll(family, '')).toMatch(/^[ax\ufffd]*$/)
  }
  expect(commitMessage('a\n\nGatehouse-Session: fake', 'ses_1')).toBe(
    'a Gatehouse-Session: fake\n\nGatehouse-Session: ses_1\n',
  )
})

test('a clean checkout holds the commit alone and a working repository of its own', async () => {
  const { workspace, repository, mirror, base, folder } = await open({
    'a.txt': 'a\n',
    '.gitignore': 'built\n',
    'run.sh': { content: '#!/bin/sh\n', executable: true },
  })
  expect(mirror).toContain('mirrors')
  writeFiles(workspace.tree, { 'b.txt': 'b\n', built: 'leftover' })
  const { tree } = await workspace.capture()
  const commit = await workspace.squash({ ...squashed, tree })
  const clean = join(folder, 'clean')
  await workspace.cleanCheckout(commit, clean)
  expect(existsSync(join(clean, 'built'))).toBe(false)
  expect(git(clean, 'status', '--porcelain')).toBe('')
  expect(git(clean, 'log', '--format=%H')).toBe(`${commit}\n${base}`)
  expect(git(clean, 'rev-parse', 'origin/main')).toBe(repository.head)
  git(clean, 'commit', '--quiet', '--allow-empty', '-m', 'x')
  git(clean, 'gc', '--quiet')
  await expect(workspace.cleanCheckout(commit, clean)).rejects.toMatchObject({ code: 'EEXIST' })
  const untouched = join(folder, 'untouched')
  await workspace.cleanCheckout(base, untouched)
  expect(git(untouched, 'status', '--porcelain')).toBe('')
})

test('a clean checkout can be described by the tags of the repository', async () => {
  const repository = makeRepository()
  repository.git('tag', '-a', 'v1.2.0', '-m', 'one')
  const folder = temporaryFolder()
  const mirror = await mirrorOf(repository.directory, folder)
  const workspace = await openWorkspace({ run: join(folder, 'run'), mirror, base: repository.head })
  expect(git(workspace.tree, 'describe')).toBe('v1.2.0')
  writeFiles(workspace.tree, { a: 'a' })
  const { tree } = await workspace.capture()
  const commit = await workspace.squash({ ...squashed, tree })
  await workspace.cleanCheckout(commit, join(folder, 'clean'))
  expect(git(join(folder, 'clean'), 'describe')).toMatch(/^v1\.2\.0-1-g/)
})

test('changed paths name both ends of a rename, modes, binaries and lines', async () => {
  const text = Array.from({ length: 20 }, (_, line) => `line ${line}\n`).join('')
  const { workspace, base } = await open({ 'old.txt': text, 'mode.sh': 'x\n', 'gone.txt': '1\n2\n', b: 'b' })
  rmSync(join(workspace.tree, 'old.txt'))
  rmSync(join(workspace.tree, 'mode.sh'))
  rmSync(join(workspace.tree, 'gone.txt'))
  rmSync(join(workspace.tree, 'b'))
  writeFiles(workspace.tree, {
    'dir/new name.txt': `${text}more\n`,
    'mode.sh': { content: 'x\n', executable: true },
    'blob.bin': Buffer.from([0, 1, 2]),
    b: { link: 'a' },
  })
  const { tree } = await workspace.capture()
  const { paths, stat } = await workspace.changedPaths(await workspace.squash({ ...squashed, tree }))
  expect(stat).toEqual({ files: 6, insertions: 2, deletions: 3 })
  const seen = Object.fromEntries(paths.map((path) => [path.path, path]))
  expect(seen['dir/new name.txt']).toEqual({
    path: 'dir/new name.txt',
    old_path: 'old.txt',
    status: 'renamed',
    binary: false,
    insertions: 1,
    deletions: 0,
    old_mode: '100644',
    new_mode: '100644',
  })
  expect(seen['mode.sh']).toMatchObject({ status: 'modified', old_mode: '100644', new_mode: '100755' })
  expect(seen['gone.txt']).toMatchObject({ status: 'deleted', deletions: 2, new_mode: '000000' })
  expect(seen['blob.bin']).toMatchObject({ status: 'added', binary: true, insertions: null, deletions: null })
  expect(seen.b).toMatchObject({ status: 'type_changed', new_mode: '120000' })
  expect(await workspace.changedPaths(base)).toEqual({
    paths: [],
    stat: { files: 0, insertions: 0, deletions: 0 },
  })
})

test('a patch applies to the base and gives the commit, binaries and odd names included', async () => {
  const { workspace, repository, base, folder } = await open({
    'a.txt': 'a\n',
    'old name': 'same\n'.repeat(9),
  })
  rmSync(join(workspace.tree, 'old name'))
  writeFiles(workspace.tree, {
    'a.txt': 'no newline',
    'blob.bin': Buffer.from(Array.from({ length: 3000 }, (_, i) => (i * 7) % 256)),
    'new\tname\n"quoted"': 'same\n'.repeat(9),
    'latin.txt': Buffer.from([0x63, 0xe9, 0x0a]),
    '.gitattributes': '*.txt -diff\n* diff=evil\n',
  })
  const { tree } = await workspace.capture()
  const commit = await workspace.squash({ ...squashed, tree })
  const file = join(folder, 'patch')
  const bytes = await workspace.writePatch(commit, file)
  expect(bytes).toBe(readFileSync(file).length)
  const target = join(folder, 'target')
  git('/', 'clone', '--quiet', repository.directory, target)
  git(target, 'checkout', '--quiet', base)
  git(target, 'apply', '--index', file)
  expect(git(target, 'write-tree')).toBe(tree)
  const head = await readPatchHead(file, limits.approvalPatch)
  expect(head).toMatchObject({ truncated: false, full_bytes: bytes })
  expect(head.patch).toContain('+c\ufffd')
  expect(head.patch, 'attributes of the tree hide nothing').toContain('+no newline')
})

test('the head of a patch is cut between characters', async () => {
  const file = join(temporaryFolder(), 'patch')
  writeFileSync(file, 'ab€😀z')
  const heads = await Promise.all(
    [0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11].map((limit) => readPatchHead(file, limit)),
  )
  expect(heads.map((head) => head.patch)).toEqual([
    '',
    'a',
    'ab',
    'ab',
    'ab',
    'ab€',
    'ab€',
    'ab€',
    'ab€😀',
    'ab€😀z',
    'ab€😀z',
  ])
  expect(heads.map((head) => head.truncated)).toEqual([...Array(9).fill(true), false, false])
})

test('submodules, LFS content and other filters are named before work begins', async () => {
  const oid = 'a'.repeat(64)
  const repository = makeRepository({
    files: {
      '.gitattributes': '*.bin filter=lfs diff=lfs merge=lfs -text\n',
      'sub/.gitattributes': '# x filter=no\nsecret filter=git-crypt\n',
      'big.bin': `version https://git-lfs.github.com/spec/v1\noid sha256:${oid}\nsize 12345\n`,
      'plain.txt': 'x'.repeat(130),
    },
  })
  const clean = await preflightTree(await mirrorOf(makeRepository().directory), makeRepository().head)
  expect(clean).toEqual([])
  const inner = makeRepository()
  repository.git(
    '-c',
    'protocol.file.allow=always',
    'submodule',
    '--quiet',
    'add',
    inner.directory,
    'vendor/x',
  )
  const commit = repository.commit({})
  const mirror = await mirrorOf(repository.directory)
  const problems = await preflightTree(mirror, good(await resolveBase(mirror, null)).commit)
  expect(commit).toBe(good(await resolveBase(mirror, null)).commit)
  expect(problems.map(({ kind, paths, count }) => ({ kind, paths, count }))).toEqual([
    { kind: 'submodule', paths: ['.gitmodules', 'vendor/x'], count: 2 },
    { kind: 'lfs', paths: ['.gitattributes', 'big.bin'], count: 2 },
    { kind: 'filter', paths: ['sub/.gitattributes'], count: 1 },
  ])
  expect(problems[0]?.detail).toContain('vendor/x')
})

test('a SHA-256 repository goes all the way', async () => {
  const repository = makeRepository({ format: 'sha256' })
  const folder = temporaryFolder()
  const mirror = await mirrorOf(repository.directory, folder)
  const base = repository.head
  const workspace = await openWorkspace({ run: join(folder, 'run'), mirror, base })
  expect(git(workspace.tree, 'status', '--porcelain')).toBe('')
  writeFiles(workspace.tree, { a: 'a' })
  const { tree } = await workspace.capture()
  const checkpoint = await workspace.checkpoint(tree)
  const restored = await openWorkspace({ run: join(folder, 'run2'), mirror, base, checkpoint })
  expect(listTree(restored, (await restored.capture()).tree)).toEqual(['README.md', 'a'])
})
