import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { resolveBase } from '../../../lib/workspace/base.ts'
import { LockTimeout, withLock } from '../../../lib/workspace/lock.ts'
import { fetchMirror, pinBase, unpinBase } from '../../../lib/workspace/mirror.ts'
import { git, makeRepository, temporaryFolder } from '../../repositories.ts'
import { good, localRepository, mirrorOf } from './support.ts'

const refs = (mirror: string) => git(mirror, 'for-each-ref', '--format=%(refname) %(objectname)').split('\n')

const pins = (mirror: string) => refs(mirror).filter((line) => line.includes('/pins/'))

const fetchScript = join(import.meta.dirname, 'fetch-mirror.ts')
const fetcher = (home: string, path: string, env: Record<string, string> = {}): ChildProcess => {
  const child = spawn(process.execPath, [fetchScript, home, path], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { PATH: process.env.PATH, NODE_NO_WARNINGS: '1', ...env },
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  return child
}
const outputOf = async (child: ChildProcess): Promise<string> => {
  let text = ''
  child.stdout?.on('data', (chunk: Buffer) => {
    text += chunk.toString()
  })
  await once(child, 'close')
  return text
}

test('a mirror holds every ref, remote-tracking ones included, and follows the repository', async () => {
  const repository = makeRepository()
  repository.git('update-ref', 'refs/remotes/origin/topic', 'HEAD')
  repository.git('tag', '-a', 'v1', '-m', 'one')
  repository.git('branch', 'foo')
  const home = temporaryFolder()
  const mirror = await mirrorOf(repository.directory, home)
  expect(refs(mirror).map((line) => line.split(' ')[0])).toEqual([
    'refs/gatehouse/head',
    'refs/heads/foo',
    'refs/heads/main',
    'refs/remotes/origin/topic',
    'refs/tags/v1',
  ])

  repository.git('branch', '-D', 'foo')
  repository.git('branch', 'foo/bar')
  const moved = repository.commit({ 'a.txt': 'a' })
  expect(await mirrorOf(repository.directory, home)).toBe(mirror)
  expect(refs(mirror)).toContain(`refs/heads/main ${moved}`)
  expect(refs(mirror).join()).not.toContain('refs/heads/foo ')
  expect(good(await resolveBase(mirror, 'foo/bar')).commit).toBe(repository.head)
})

test('a mirror that is up to date is not fetched again', async () => {
  const repository = makeRepository()
  const home = temporaryFolder()
  const mirror = await mirrorOf(repository.directory, home)
  const before = readdirSync(mirror, { recursive: true }).sort()
  await mirrorOf(repository.directory, home)
  expect(readdirSync(mirror, { recursive: true }).sort()).toEqual(before)
})

test('a bare, a dirty, a detached, a linked and a SHA-256 repository are mirrored at their HEAD', async () => {
  const bare = makeRepository({ bare: true })
  const dirty = makeRepository()
  writeFileSync(join(dirty.directory, 'README.md'), 'changed')
  const detached = makeRepository()
  detached.git('checkout', '--quiet', '--detach')
  const lone = detached.commit({ b: 'b' })
  const linked = makeRepository()
  const worktree = join(temporaryFolder(), 'linked')
  linked.git('worktree', 'add', '--quiet', '-b', 'side', worktree)
  const wide = makeRepository({ format: 'sha256' })
  for (const [path, head] of [
    [bare.directory, bare.head],
    [dirty.directory, dirty.head],
    [detached.directory, lone],
    [worktree, linked.head],
    [wide.directory, wide.head],
  ] as const) {
    const mirror = await mirrorOf(path)
    expect(good(await resolveBase(mirror, null)).commit).toBe(head)
    expect(good(await resolveBase(mirror, 'HEAD')).commit).toBe(head)
  }
})

test('a shallow repository is mirrored with its cut', async () => {
  const full = makeRepository()
  const head = full.commit({ c: 'c' })
  const shallow = join(temporaryFolder(), 'shallow')
  git('/', 'clone', '--quiet', '--depth=1', `file://${full.directory}`, shallow)
  const mirror = await mirrorOf(shallow)
  expect(git(mirror, 'log', '--format=%H', head)).toBe(head)
})

test('a repository without commits, and one whose HEAD names none, say so', async () => {
  const empty = makeRepository({ files: null })
  const home = temporaryFolder()
  const mirror = await mirrorOf(empty.directory, home)
  expect(await resolveBase(mirror, null)).toMatchObject({ ok: false, problem: 'no_commits' })
  expect(await resolveBase(mirror, 'main')).toMatchObject({ ok: false, problem: 'no_commits' })

  const commit = empty.commit({ a: 'a' })
  await mirrorOf(empty.directory, home)
  expect(good(await resolveBase(mirror, null)).commit).toBe(commit)

  empty.git('symbolic-ref', 'HEAD', 'refs/heads/nothing')
  await mirrorOf(empty.directory, home)
  expect(await resolveBase(mirror, null)).toMatchObject({ ok: false, problem: 'no_commits' })
  expect(good(await resolveBase(mirror, 'main')).commit).toBe(commit)
  expect(await resolveBase(mirror, 'other')).toMatchObject({ ok: false, problem: 'base_not_found' })
})

test('what is no repository is told apart', async () => {
  const folder = temporaryFolder()
  const home = temporaryFolder()
  const look = (path: string) => fetchMirror({ home, repository: localRepository(path) })
  expect(await look(join(folder, 'missing'))).toMatchObject({ problem: 'not_a_repository' })
  expect(await look(folder)).toMatchObject({ problem: 'not_a_repository' })
  const inside = makeRepository({ files: { 'sub/a': 'a' } })
  expect(await look(join(inside.directory, 'sub'))).toMatchObject({ problem: 'not_a_repository' })
})

test('a base may be any commit-ish, and nothing in it is an option', async () => {
  const repository = makeRepository({ files: { 'a.txt': 'a' } })
  const second = repository.commit({ 'b.txt': 'b' })
  repository.git('tag', '-a', 'v1', '-m', 'one')
  const mirror = await mirrorOf(repository.directory)
  for (const name of ['main', 'v1', second, second.slice(0, 10), 'HEAD', 'refs/heads/main'])
    expect(good(await resolveBase(mirror, name)).commit).toBe(second)
  expect(good(await resolveBase(mirror, 'main~1')).commit).toBe(repository.head)
  const marker = join(temporaryFolder(), 'marker')
  for (const name of [
    '--help',
    '-x',
    `--output=${marker}`,
    '',
    'main\nmain',
    'nothing',
    'main~9',
    '0'.repeat(40),
  ])
    expect(await resolveBase(mirror, name)).toMatchObject({ ok: false, problem: 'base_not_found' })
  expect(existsSync(marker)).toBe(false)
  expect(await resolveBase(mirror, 'main:a.txt')).toMatchObject({
    problem: 'base_not_found',
    detail: expect.stringContaining('blob'),
  })
  expect(await resolveBase(mirror, 'main^{tree}')).toMatchObject({ detail: expect.stringContaining('tree') })
})

test('a pinned base outlives its branch and the mirror being repacked', async () => {
  const repository = makeRepository()
  repository.git('checkout', '--quiet', '-b', 'topic')
  const commit = repository.commit({ t: 't' })
  repository.git('checkout', '--quiet', 'main')
  const home = temporaryFolder()
  const mirror = await mirrorOf(repository.directory, home)
  await pinBase(mirror, 'ses_1', commit)
  await pinBase(mirror, 'ses_1', commit)
  repository.git('branch', '-D', 'topic')
  await mirrorOf(repository.directory, home)
  git(mirror, 'gc', '--quiet', '--prune=now')
  expect(good(await resolveBase(mirror, commit)).commit).toBe(commit)
})

test('a session lets go of its own pin only', async () => {
  const repository = makeRepository()
  const home = temporaryFolder()
  const mirror = await mirrorOf(repository.directory, home)
  await pinBase(mirror, 'ses_1', repository.head)
  await pinBase(mirror, 'ses_2', repository.head)
  const letGo = (sessionId: string) =>
    unpinBase({ home, repository: localRepository(repository.directory), sessionId })
  await letGo('ses_1')
  await letGo('ses_1')
  expect(pins(mirror)).toEqual([`refs/gatehouse/pins/ses_2 ${repository.head}`])
  await expect(pinBase(mirror, '../../heads/main', repository.head)).rejects.toThrow()
  await expect(letGo('../../heads/main')).rejects.toThrow()
  expect(refs(mirror)).toContain(`refs/heads/main ${repository.head}`)
})

test('a session lets go of its pin in a mirror that somebody has packed', async () => {
  const repository = makeRepository()
  const home = temporaryFolder()
  const mirror = await mirrorOf(repository.directory, home)
  await pinBase(mirror, 'ses_1', repository.head)
  await pinBase(mirror, 'ses_10', repository.head)
  git(mirror, 'pack-refs', '--all', '--prune')
  expect(existsSync(join(mirror, 'refs', 'gatehouse', 'pins', 'ses_1'))).toBe(false)
  await unpinBase({ home, repository: localRepository(repository.directory), sessionId: 'ses_1' })
  expect(pins(mirror)).toEqual([`refs/gatehouse/pins/ses_10 ${repository.head}`])
})

test('a session lets go of its pins in every mirror of its repository, and where there is none', async () => {
  const directory = join(temporaryFolder(), 'repository')
  const home = temporaryFolder()
  const letGo = () => unpinBase({ home, repository: localRepository(directory), sessionId: 'ses_1' })
  await letGo()
  const narrow = makeRepository({ directory })
  const mirrors = [await mirrorOf(directory, home)]
  await pinBase(mirrors[0] ?? '', 'ses_1', narrow.head)
  rmSync(directory, { recursive: true })
  const wide = makeRepository({ directory, format: 'sha256' })
  mirrors.push(await mirrorOf(directory, home))
  await pinBase(mirrors[1] ?? '', 'ses_1', wide.head)
  expect(mirrors.map((mirror) => pins(mirror).length)).toEqual([1, 1])
  await letGo()
  expect(mirrors.map((mirror) => pins(mirror).length)).toEqual([0, 0])
})

test('processes that fetch one mirror at once all succeed', async () => {
  const repository = makeRepository()
  for (let i = 0; i < 20; i++) repository.git('branch', `b${i}`)
  const home = temporaryFolder()
  const outputs = await Promise.all([1, 2, 3].map(() => outputOf(fetcher(home, repository.directory))))
  expect(new Set(outputs).size).toBe(1)
  const [output = ''] = outputs
  expect(good(JSON.parse(output)).ok).toBe(true)
  expect(git(JSON.parse(output).directory, 'rev-list', '--objects', '--all')).toContain(repository.head)
})

/** A git that stops in the middle of every fetch, as a slow network would make it. */
const slowGit = (folder: string): string => {
  const bin = join(folder, 'bin')
  mkdirSync(bin)
  const real = git('/', '--exec-path')
  writeFileSync(
    join(bin, 'git'),
    `#!/bin/sh\nif [ "$1" = fetch ]; then\n touch "${folder}/started"\n sleep 60\nfi\nexec "${real}/git" "$@"\n`,
    { mode: 0o755 },
  )
  return bin
}

test('a fetch whose worker was killed leaves no lock, no orphan and no debris in the way of the next', async () => {
  const repository = makeRepository()
  const home = temporaryFolder()
  const folder = temporaryFolder()
  const mirror = await mirrorOf(repository.directory, home)
  const moved = repository.commit({ d: 'd' })
  const killed = fetcher(home, repository.directory, { PATH: `${slowGit(folder)}:${process.env.PATH}` })
  while (!existsSync(join(folder, 'started'))) await sleep(10)
  const noted = () => JSON.parse(readFileSync(`${mirror}.fetching`, 'utf8')).pid
  await expect.poll(noted).toEqual(expect.any(Number))
  const pid = noted()
  killed.kill('SIGKILL')
  await once(killed, 'close')
  expect(() => process.kill(pid, 0)).not.toThrow()
  writeFileSync(join(mirror, 'refs', 'heads', 'main.lock'), '')
  writeFileSync(join(mirror, 'packed-refs.lock'), '')
  writeFileSync(join(mirror, 'shallow.lock'), '')
  writeFileSync(join(mirror, 'objects', 'pack', 'tmp_pack_abc'), 'half')

  await mirrorOf(repository.directory, home)
  expect(good(await resolveBase(mirror, null)).commit).toBe(moved)
  expect(existsSync(join(mirror, 'objects', 'pack', 'tmp_pack_abc'))).toBe(false)
  expect(existsSync(`${mirror}.fetching`)).toBe(false)
  await expect.poll(() => existsSync(`/proc/${pid}/cwd`)).toBe(false)
})

test('an aborted fetch ends its processes and the next one succeeds', async () => {
  const repository = makeRepository()
  const home = temporaryFolder()
  const abort = new AbortController()
  abort.abort()
  await expect(
    fetchMirror({ home, repository: localRepository(repository.directory), signal: abort.signal }),
  ).rejects.toMatchObject({ kind: 'cancelled' })
  expect(await mirrorOf(repository.directory, home)).toContain('mirrors')
})

test('a lock that stays taken is waited for no longer than allowed', async () => {
  const file = join(temporaryFolder(), 'lock')
  const holder = new DatabaseSync(file)
  holder.exec('BEGIN EXCLUSIVE')
  await expect(withLock(file, { waitMs: 30 }, async () => 1)).rejects.toBeInstanceOf(LockTimeout)
  holder.close()
  expect(await withLock(file, { waitMs: 30 }, async () => 1)).toBe(1)
})

test('work under one lock never overlaps', async () => {
  const file = join(temporaryFolder(), 'lock')
  let inside = 0
  let most = 0
  const work = async () => {
    most = Math.max(most, ++inside)
    await sleep(5)
    inside--
  }
  await Promise.all(Array.from({ length: 5 }, () => withLock(file, { waitMs: 5000 }, work)))
  expect(most).toBe(1)
})

test('a damaged note of a killed fetch does not stop the next', async () => {
  const repository = makeRepository()
  const home = temporaryFolder()
  const mirror = await mirrorOf(repository.directory, home)
  for (const text of ['', '{', '{"pid":1}', `{"pid":${process.pid},"started":"1"}`]) {
    writeFileSync(`${mirror}.fetching`, text)
    expect(await mirrorOf(repository.directory, home)).toBe(mirror)
  }
})
