import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { shortId } from '../../../lib/ids.ts'
import { git, makeRepository, temporaryFolder, writeFiles } from '../../repositories.ts'
import { contractOf } from './commands.ts'
import { outcome, startSession } from './support.ts'

const problemsOf = async (session: Awaited<ReturnType<typeof startSession>>, over = {}) =>
  outcome(await session.run('Preflight', over), 'Preflight').problems

test('nothing is missing where all is there', async () => {
  expect(await problemsOf(await startSession())).toEqual([])
})

test('all that is missing is told together, each with its own kind', async () => {
  const session = await startSession({ requested_base: 'no-such-base', engine_command: ['no-such-engine'] })
  session.repository.git('branch', `gatehouse/${shortId(session.facts.id)}`)
  expect(await problemsOf(session)).toEqual([
    { failure_kind: 'configuration', detail: expect.stringContaining('no-such-base') },
    { failure_kind: 'configuration', detail: expect.stringContaining('is there already') },
    { failure_kind: 'configuration', detail: expect.stringContaining('no-such-engine') },
  ])
  expect(await problemsOf(session, { requested_base: null, engine_command: null })).toHaveLength(2)
})

test('a repository that is not there says nothing of its base, and the engine is looked at all the same', async () => {
  const session = await startSession({
    ...{ repo: join(temporaryFolder(), 'nothing'), requested_base: 'x', engine_command: ['no-such-engine'] },
  })
  const problems = await problemsOf(session)
  expect(problems).toEqual([
    { failure_kind: 'configuration', detail: expect.stringContaining('There is no folder') },
    { failure_kind: 'configuration', detail: expect.stringContaining('no-such-engine') },
  ])
})

test('a tree that can’t be checked out whole is told, and a start in spite of it prepares', async () => {
  const { directory, head } = makeRepository({
    files: { '.gitattributes': '*.bin filter=x\n', 'a.bin': 'a' },
  })
  const session = await startSession({ repo: directory })
  expect(await problemsOf(session)).toMatchObject([{ failure_kind: 'configuration' }])
  expect(outcome(await session.run('Prepare'), 'Prepare').start_commit).toBe(head)
})

test('work in the repository that no commit holds is told with the start, and is no part of it', async () => {
  const session = await startSession()
  expect(outcome(await session.run('Prepare'), 'Prepare').warnings).toEqual([])
  writeFiles(session.repository.directory, { 'a.txt': 'changed\n', 'new.txt': 'new\n' })
  const { warnings, start_commit } = outcome(await session.run('Prepare'), 'Prepare')
  expect(start_commit).toBe(session.repository.head)
  expect(warnings).toEqual([expect.stringContaining('no commit holds (a.txt, new.txt)')])
})

test('a start in spite of a base that does not resolve fails as such, and so does one without a repository', async () => {
  const session = await startSession({ requested_base: 'no-such-base' })
  expect(await session.run('Prepare')).toMatchObject({
    outcome: 'failed',
    failure_kind: 'configuration',
    error: expect.stringContaining('no-such-base'),
  })
  const repo = join(temporaryFolder(), 'nothing')
  expect(await session.run('Prepare', { repo })).toMatchObject({
    outcome: 'failed',
    failure_kind: 'configuration',
    error: expect.stringContaining('There is no folder'),
  })
})

test('a repository that can’t be reached is a fault, for it may be there the next time', async () => {
  const session = await startSession({ repo: 'https://127.0.0.1:1/repository.git' })
  expect(await problemsOf(session)).toMatchObject([{ failure_kind: 'infrastructure' }])
  expect(await session.run('Prepare')).toMatchObject({ outcome: 'fault' })
})

test('a continuation opens at the work of the session before; its baseline and its draft are of the base', async () => {
  const first = await startSession({
    contract: contractOf('test -e done'),
    engine_command: `printf '{"scripts":{"test":"true"}}' > package.json; echo yes > half`,
  })
  const begun = await first.prepare()
  const { checkpoint } = outcome(await first.run('Code', begun), 'Code')
  expect(checkpoint.bundle).not.toBeNull()

  const second = await startSession({
    repo: first.repository.directory,
    contract: contractOf('test -e half'),
  })
  const stored = first.api.state.store.get(`bundle/${checkpoint.bundle}`)
  second.api.state.store.set(`bundle/${checkpoint.bundle}`, stored ?? Buffer.alloc(0))
  const bundle = { url: second.api.store('bundle', checkpoint.bundle ?? '') }
  const from = { requested_base: first.repository.head, checkpoint }

  const prepared = outcome(await second.run('Prepare', from, { bundle }), 'Prepare')
  expect(prepared).toMatchObject({
    ...{ base: first.repository.head, start_commit: first.repository.head, tree: begun.start_tree },
  })
  const start = { ...from, start_commit: prepared.start_commit, start_tree: prepared.tree }
  const { results } = outcome(await second.run('Baseline', start, { bundle }), 'Baseline')
  expect(results).toMatchObject([{ verdict: 'failed' }])
  expect(await second.run('Draft', { ...start, contract: null }, { bundle })).toMatchObject({
    outcome: 'failed',
  })

  const seen = join(second.folder, 'seen')
  const engine_command = `cat half > ${seen}; git status --porcelain >> ${seen}`
  const run = outcome(await second.run('Code', { ...start, engine_command }, { bundle }), 'Code')
  expect(readFileSync(seen, 'utf8')).toBe('yes\n?? half\n?? package.json\n')
  expect(run).toMatchObject({ changed: false, touched: false, checkpoint: { tree: checkpoint.tree } })
  expect(git(first.repository.directory, 'status', '--porcelain')).toBe('')
})
