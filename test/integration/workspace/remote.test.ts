import { readdirSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { resolveBase } from '../../../lib/workspace/base.ts'
import { deliverBranch } from '../../../lib/workspace/delivery.ts'
import { checkDeliverable } from '../../../lib/workspace/delivery-check.ts'
import { fetchMirror } from '../../../lib/workspace/mirror.ts'
import { parseRepository } from '../../../lib/workspace/repository-address.ts'
import { openWorkspace } from '../../../lib/workspace/workspace.ts'
import { makeRepository, temporaryFolder, writeFiles } from '../../repositories.ts'
import { startHttps } from './https-remote.ts'
import { good } from './support.ts'

const credentials = { username: 'x-access-token', password: 'the-token' }
const branch = 'gatehouse/abcd1234'

const needsToken = (request: IncomingMessage): number | null =>
  request.headers.authorization === `Basic ${btoa('x-access-token:the-token')}` ? null : 401

const remote = (address: string) => parseRepository(address, { allowLocal: false })

const prepare = async (status: (request: IncomingMessage) => number | null) => {
  const server = makeRepository({ bare: true })
  server.git('config', 'http.receivepack', 'true')
  const origin = await startHttps(dirname(server.directory), status)
  const repository = remote(`${origin}/repository.git`)
  const home = temporaryFolder()
  return { server, origin, repository, home }
}

const finish = async ({ home, repository }: Awaited<ReturnType<typeof prepare>>) => {
  const mirror = good(await fetchMirror({ home, repository, credentials })).directory
  const base = good(await resolveBase(mirror, 'main')).commit
  const workspace = await openWorkspace({ run: join(home, 'run'), mirror, base })
  writeFiles(workspace.tree, { made: 'made' })
  const { tree } = await workspace.capture()
  const commit = await workspace.squash({
    tree,
    intent: 'x',
    sessionId: 'ses_1',
    date: new Date('2026-01-01'),
  })
  return { gitDirectory: workspace.gitDirectory, repository, base, commit, branch, credentials }
}

test('a remote is mirrored and receives one new branch, never an update', async () => {
  const prepared = await prepare(needsToken)
  const { server } = prepared
  const delivery = await finish(prepared)
  expect(await checkDeliverable(delivery)).toEqual({ ok: true, status: 'free' })
  expect(await deliverBranch(delivery)).toMatchObject({ ok: true, status: 'delivered' })
  expect(server.git('rev-parse', branch)).toBe(delivery.commit)
  expect(await deliverBranch(delivery)).toMatchObject({ ok: true, status: 'already_there' })

  server.git('update-ref', `refs/heads/${branch}`, server.head)
  expect(await deliverBranch(delivery)).toMatchObject({ problem: 'branch_exists' })
  expect(server.git('rev-parse', branch)).toBe(server.head)
  server.git('branch', '-D', branch)
  server.git('branch', 'gatehouse')
  expect(await checkDeliverable(delivery)).toMatchObject({ problem: 'ref_clash' })
  expect(await deliverBranch(delivery)).toMatchObject({ problem: 'ref_clash' })
  server.git('branch', '-D', 'gatehouse')

  writeFiles(join(server.directory, 'hooks'), {
    'pre-receive': { content: '#!/bin/sh\necho workflow scope is missing >&2\nexit 1\n', executable: true },
  })
  expect(await deliverBranch(delivery)).toMatchObject({
    problem: 'rejected',
    detail: expect.stringMatching(/pre-receive hook declined[\s\S]*workflow scope is missing/),
  })
})

test('credentials that are missing, wrong or expired before the push are told apart from a lost network', {
  timeout: 30_000,
}, async () => {
  let expired = false
  const prepared = await prepare((request) => (expired ? 401 : needsToken(request)))
  const { home, repository, origin } = prepared
  const problem = async (address: string, given?: typeof credentials) =>
    fetchMirror({ home, repository: remote(address), credentials: given })
  expect(await problem(repository.url)).toMatchObject({ problem: 'authentication' })
  const wrong = await problem(repository.url, { ...credentials, password: 'wrong' })
  expect(wrong).toMatchObject({ problem: 'authentication' })
  expect(JSON.stringify(wrong)).not.toContain('wrong')
  expect(await problem(`${origin}/missing.git`, credentials)).toMatchObject({ problem: 'not_a_repository' })
  expect(await problem('https://localhost:1/x.git')).toMatchObject({ problem: 'unreachable' })
  expect(await problem('https://name.invalid/x.git')).toMatchObject({ problem: 'unreachable' })

  const delivery = await finish(prepared)
  expired = true
  expect(await deliverBranch(delivery)).toMatchObject({ problem: 'authentication' })
  expired = false
  expect(await deliverBranch(delivery)).toMatchObject({ ok: true, status: 'delivered' })
})

test.each([
  [403, 'authentication'],
  [404, 'not_a_repository'],
  [503, 'unreachable'],
])('a push that is answered %i is %s', async (status, problem) => {
  const receiving = (request: IncomingMessage) =>
    request.url?.includes('receive-pack') ? status : needsToken(request)
  const delivery = await finish(await prepare(receiving))
  expect(await deliverBranch(delivery)).toMatchObject({ ok: false, problem })
})

test('an abort ends a fetch in the middle, and the next one succeeds', async () => {
  const server = makeRepository({ bare: true })
  const asked = Promise.withResolvers<void>()
  const left = Promise.withResolvers<void>()
  const home = temporaryFolder()
  const isFetching = () =>
    readdirSync(home, { recursive: true }).some((name) => String(name).endsWith('.fetching'))
  let hangs = true
  const origin = await startHttps(dirname(server.directory), (request) => {
    if (!hangs || request.method !== 'POST' || !isFetching()) return null
    request.on('close', () => left.resolve())
    asked.resolve()
    return 'nothing'
  })
  const repository = remote(`${origin}/repository.git`)
  const abort = new AbortController()
  const fetching = fetchMirror({ home, repository, signal: abort.signal }).catch((error: unknown) => error)
  await asked.promise
  abort.abort()
  expect(await fetching).toMatchObject({ name: 'GitError', kind: 'cancelled' })
  await left.promise
  hangs = false
  const mirror = good(await fetchMirror({ home, repository }))
  expect(mirror.head?.commit).toBe(server.head)
})
