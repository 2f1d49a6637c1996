import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { GitError, git, records } from '../../../lib/workspace/git.ts'
import { makeRepository, temporaryFolder } from '../../repositories.ts'

/** A git command that starts a child of its own and stays; the child's id is written down. */
const staying = (folder: string): string[] => [
  ...['-c', `alias.stay=!sleep 60 & echo $! > ${folder}/child; trap "" TERM; wait; sleep 60`],
  'stay',
]
const childOf = async (folder: string): Promise<number> => {
  await vi.waitFor(() => expect(readFileSync(join(folder, 'child'), 'utf8')).toMatch(/\d\n/), {
    timeout: 10_000,
  })
  return Number(readFileSync(join(folder, 'child'), 'utf8'))
}
const isAlive = (pid: number): boolean => {
  try {
    return !/^State:\tZ/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

test('an abort ends the whole process group, even one that ignores the request', {
  timeout: 30_000,
}, async () => {
  const folder = temporaryFolder()
  const abort = new AbortController()
  const running = git(staying(folder), { signal: abort.signal }).catch((error: unknown) => error)
  const child = await childOf(folder)
  abort.abort()
  expect(await running).toMatchObject({ name: 'GitError', kind: 'cancelled' })
  await vi.waitFor(() => expect(isAlive(child)).toBe(false))
})

test('a time limit ends the whole process group', { timeout: 30_000 }, async () => {
  const folder = temporaryFolder()
  const running = git(staying(folder), { timeoutMs: 2000 }).catch((error: unknown) => error)
  const child = await childOf(folder)
  expect(await running).toMatchObject({ kind: 'timeout' })
  await vi.waitFor(() => expect(isAlive(child)).toBe(false))
})

test('a refusal keeps the exit code and what git said; an allowed code is an answer', async () => {
  const { directory } = makeRepository()
  const args = ['rev-parse', '--verify', 'nothing']
  const error = await git(args, { cwd: directory }).catch((cause: unknown) => cause)
  expect(error).toBeInstanceOf(GitError)
  expect(error).toMatchObject({ kind: 'exit', exitCode: 128, stderr: expect.stringContaining('fatal') })
  expect((await git(args, { cwd: directory, allow: [128] })).exitCode).toBe(128)
})

test('a program that is not there is no answer of git', async () => {
  await expect(git(['version'], { cwd: '/nowhere' })).rejects.toMatchObject({ kind: 'spawn' })
})

test("variables and settings of the worker's own surroundings have no say", async () => {
  const { directory } = makeRepository()
  const folder = temporaryFolder()
  writeFileSync(join(folder, '.gitconfig'), '[alias]\n\tx = !touch ran\n[user]\n\tname = Someone\n')
  for (const [name, value] of Object.entries({
    HOME: folder,
    XDG_CONFIG_HOME: folder,
    GIT_DIR: folder,
    GIT_INDEX_FILE: join(folder, 'index'),
    GIT_EXTERNAL_DIFF: 'touch ran',
    GIT_CONFIG_PARAMETERS: "'user.name=Someone'",
    AWS_SECRET_ACCESS_KEY: 'secret',
  }))
    vi.stubEnv(name, value)
  try {
    expect((await git(['config', 'user.name'], { cwd: directory })).stdout.toString()).toBe('Gatehouse\n')
    const seen = await git(['-c', 'alias.env=!env', 'env'], { cwd: directory })
    expect(seen.stdout.toString()).not.toMatch(/secret|EXTERNAL|INDEX_FILE|XDG/)
    expect(existsSync(join(directory, 'ran'))).toBe(false)
  } finally {
    vi.unstubAllEnvs()
  }
})

test('output goes to a file byte for byte, and NUL-terminated records stay bytes', async () => {
  const { directory } = makeRepository({ files: { 'a b': Buffer.from([0xff, 0, 10]) } })
  const outputFile = join(temporaryFolder(), 'out')
  const result = await git(['cat-file', 'blob', 'HEAD:a b'], { cwd: directory, outputFile })
  expect(readFileSync(outputFile)).toEqual(Buffer.from([0xff, 0, 10]))
  expect(result.stdout).toHaveLength(0)
  expect(records(Buffer.from('a\0b c\0\0'))).toEqual([Buffer.from('a'), Buffer.from('b c'), Buffer.from('')])
})

test('an abort before the start starts nothing', async () => {
  await expect(git(['version'], { signal: AbortSignal.abort() })).rejects.toMatchObject({ kind: 'cancelled' })
  await sleep(1)
})
