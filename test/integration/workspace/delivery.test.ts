import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { deliverBranch } from '../../../lib/workspace/delivery.ts'
import { branchName, checkDeliverable } from '../../../lib/workspace/delivery-check.ts'
import { openWorkspace } from '../../../lib/workspace/workspace.ts'
import { git, makeRepository, temporaryFolder, writeFiles } from '../../repositories.ts'
import { contents, localRepository, mirrorOf, type Opened, open } from './support.ts'

const branch = 'gatehouse/abcd1234'

const finished = async (opened: Pick<Opened, 'workspace' | 'base'>, path: string) => {
  const { workspace, base } = opened
  writeFiles(workspace.tree, { 'made.txt': 'made\n', 'deep/er.txt': 'x\n' })
  const { tree } = await workspace.capture()
  const date = new Date('2026-01-01')
  const commit = await workspace.squash({ tree, intent: 'Make it', sessionId: 'ses_1', date })
  const repository = localRepository(path)
  return { gitDirectory: workspace.gitDirectory, repository, base, commit, branch }
}

/** All of a user's repository but its objects and the one ref. */
const rest = (path: string) =>
  contents(path, (file) => /\/\.git\/objects(\/|$)/.test(file) || /\/refs\/heads\/gatehouse(\/|$)/.test(file))

test('the branch is named for the session', () => {
  expect(branchName('ses_01hzy7f4t8e4v9k2m3n4p5q6r7')).toBe('gatehouse/4p5q6r7'.replace('4p', 'n4p'))
})

test("a path repository gains objects and one ref; all else is byte for byte as it was, and its hooks don't run", async () => {
  const opened = await open({ 'a.txt': 'a\n' })
  const { directory } = opened.repository
  const mark = join(temporaryFolder(), 'ran')
  const evil = `#!/bin/sh\necho "$0" >> ${mark}\n`
  for (const hook of ['reference-transaction', 'post-receive', 'pre-receive', 'update', 'pre-auto-gc'])
    writeFiles(join(directory, '.git/hooks'), { [hook]: { content: evil, executable: true } })
  writeFiles(directory, { 'a.txt': 'dirty\n', 'staged.txt': 's\n', 'untracked.txt': 'u\n' })
  git(directory, 'add', 'staged.txt')
  const program = join(temporaryFolder(), 'evil')
  writeFileSync(program, evil, { mode: 0o755 })
  for (const key of [
    'core.fsmonitor',
    'core.alternateRefsCommand',
    'core.sshCommand',
    'uploadpack.packObjectsHook',
  ])
    git(directory, 'config', key, program)
  git(directory, 'config', 'gc.auto', '1')
  git(directory, 'config', 'core.logAllRefUpdates', 'always')
  const delivery = await finished(opened, directory)
  const before = rest(directory)

  expect(await checkDeliverable(delivery)).toEqual({ ok: true, status: 'free' })
  const outcome = { ok: true, branch, commit: delivery.commit }
  expect(await deliverBranch(delivery)).toEqual({ ...outcome, status: 'delivered' })
  expect(rest(directory)).toEqual(before)
  expect(await deliverBranch(delivery)).toEqual({ ...outcome, status: 'already_there' })
  expect(await checkDeliverable(delivery, delivery.commit)).toEqual({ ok: true, status: 'already_there' })
  expect(rest(directory)).toEqual(before)
  expect(existsSync(mark)).toBe(false)

  git(directory, 'config', '--unset', 'core.fsmonitor')
  expect(git(directory, 'show', `${branch}:made.txt`)).toBe('made')
  expect(git(directory, 'log', '--format=%H', branch)).toBe(`${delivery.commit}\n${opened.base}`)
  expect(git(directory, '-c', 'core.alternateRefsCommand=true', 'fsck', '--connectivity-only')).toBe('')
})

test.each([
  ['loose', false],
  ['packed', true],
])('a branch that excludes ours is found before anything is written (%s refs)', async (_, packed) => {
  const opened = await open()
  const { directory, git: run } = opened.repository
  const delivery = await finished(opened, directory)
  const expectProblem = async (problem: string) => {
    if (packed) run('pack-refs', '--all')
    const before = contents(directory)
    expect(await checkDeliverable(delivery)).toMatchObject({ ok: false, problem })
    expect(await deliverBranch(delivery)).toMatchObject({ ok: false, problem, detail: expect.any(String) })
    expect(contents(directory)).toEqual(before)
  }
  run('branch', 'gatehouse')
  await expectProblem('ref_clash')
  run('branch', '-D', 'gatehouse')
  run('branch', `${branch}/below`)
  await expectProblem('ref_clash')
  run('branch', '-D', `${branch}/below`)
  run('branch', branch)
  await expectProblem('branch_exists')
  run('branch', '-D', branch)
  run('branch', 'gatehouse/other')
  run('branch', 'gatehouse-too')
  if (packed) run('pack-refs', '--all')
  expect(await deliverBranch(delivery)).toMatchObject({ ok: true, status: 'delivered' })
})

test('a bare repository, and a linked worktree of another, receive the branch', async () => {
  const bare = makeRepository({ bare: true })
  const main = makeRepository()
  const linked = join(temporaryFolder(), 'linked')
  main.git('worktree', 'add', '--quiet', '-b', 'side', linked)
  for (const [path, check, base] of [
    [bare.directory, bare.directory, bare.head],
    [linked, main.directory, main.head],
  ] as const) {
    const folder = temporaryFolder()
    const mirror = await mirrorOf(path, folder)
    const workspace = await openWorkspace({ run: join(folder, 'run'), mirror, base })
    const delivery = await finished({ workspace, base }, path)
    expect(await deliverBranch(delivery)).toMatchObject({ ok: true, status: 'delivered' })
    expect(git(check, 'rev-parse', branch)).toBe(delivery.commit)
  }
})

test('a base that the repository no longer holds, or a ref that moved, is told', async () => {
  const opened = await open()
  const { directory, git: run } = opened.repository
  const delivery = await finished(opened, directory)
  const expected = { ref: 'refs/heads/main', commit: opened.base }
  expect(await checkDeliverable({ ...delivery, expected })).toMatchObject({ ok: true })
  const moved = opened.repository.commit({ b: 'b' })
  expect(await deliverBranch({ ...delivery, expected })).toMatchObject({ problem: 'base_moved' })
  expect(await checkDeliverable({ ...delivery, expected: { ...expected, commit: moved } })).toMatchObject({
    ok: true,
  })
  run('checkout', '--quiet', '--orphan', 'fresh')
  run('commit', '--quiet', '-m', 'fresh')
  run('branch', '-D', 'main')
  run('reflog', 'expire', '--expire=now', '--all')
  run('gc', '--quiet', '--prune=now')
  const before = contents(directory)
  expect(await deliverBranch(delivery)).toMatchObject({ ok: false, problem: 'base_moved' })
  expect(contents(directory)).toEqual(before)
})

test('a repository that is gone, and a name that is none, are told', async () => {
  const opened = await open()
  const delivery = await finished(opened, opened.repository.directory)
  for (const name of ['', '-x', 'a..b', 'a/', '/a', 'a.lock', 'a b', 'a/.b', 'a~1', 'a\nb'])
    expect(await deliverBranch({ ...delivery, branch: name })).toMatchObject({ problem: 'rejected' })
  rmSync(opened.repository.directory, { recursive: true })
  expect(await deliverBranch(delivery)).toMatchObject({ problem: 'not_a_repository' })
  expect(await checkDeliverable(delivery)).toMatchObject({ problem: 'not_a_repository' })
})

test('two deliveries of one commit at once both end well', async () => {
  const opened = await open()
  const delivery = await finished(opened, opened.repository.directory)
  const outcomes = await Promise.all([deliverBranch(delivery), deliverBranch(delivery)])
  expect(outcomes.map((outcome) => outcome.ok)).toEqual([true, true])
})

test('a shallow repository receives the branch', async () => {
  const full = makeRepository()
  const base = full.commit({ c: 'c' })
  const folder = temporaryFolder()
  const path = join(folder, 'shallow')
  git('/', 'clone', '--quiet', '--depth=1', `file://${full.directory}`, path)
  const mirror = await mirrorOf(path, folder)
  const workspace = await openWorkspace({ run: join(folder, 'run'), mirror, base })
  const delivery = await finished({ workspace, base }, path)
  expect(await deliverBranch(delivery)).toMatchObject({ ok: true, status: 'delivered' })
  expect(git(path, 'log', '--format=%H', branch)).toBe(`${delivery.commit}\n${base}`)
})
