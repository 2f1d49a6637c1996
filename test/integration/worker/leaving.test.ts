import { existsSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { liveProcesses } from '../../../lib/process/live.ts'
import { retainRequestSchema } from '../../../lib/session/protocol.ts'
import { openWorkspace } from '../../../lib/workspace/workspace.ts'
import { temporaryFolder } from '../../repositories.ts'
import { mirrorOf } from '../workspace/support.ts'
import { aCommand, contractOf } from './commands.ts'
import { eventually, exists, outcome, startSession } from './support.ts'

/** An engine that has written a file, said so, and then stays, deaf to every request to end. */
const deaf = (mark: string) =>
  ['echo half > half', `trap "" TERM; touch ${mark}`, 'while true; do sleep 600 & wait; done'].join('\n')

const working = async (keep_workspace_on_cancel: boolean) => {
  const session = await startSession({ keep_workspace_on_cancel })
  const start = await session.prepare()
  const mark = join(session.folder, 'writing')
  const command = aCommand('Code', { ...session.facts, ...start, engine_command: deaf(mark) })
  session.api.give(command)
  await exists(mark)
  const gone = async () => (await liveProcesses({ group: null, mark: session.worker.id })).length === 0
  return { ...session, command, gone }
}

test('a cancel ends the engine and keeps what it had written, for another session to restore', async () => {
  const { api, worker, command, gone, repository } = await working(true)
  api.state.ended = true
  expect(await worker.exited).toMatchObject({ code: 0 })
  expect(await gone()).toBe(true)
  const { checkpoint } = retainRequestSchema
    .pick({ checkpoint: true })
    .parse({ checkpoint: api.state.retained[0] })
  expect(api.state.retained).toHaveLength(1)
  expect(checkpoint.bundle).toBe(`${command.id}-kept.bundle`)
  const folder = temporaryFolder()
  const bundle = join(folder, 'bundle')
  await writeFile(bundle, api.state.store.get(`bundle/${checkpoint.bundle}`) ?? '')
  const mirror = await mirrorOf(repository.directory)
  const workspace = await openWorkspace({
    run: join(folder, 'run'),
    mirror,
    base: repository.head,
    checkpoint: { commit: checkpoint.commit, bundle },
  })
  expect(readFileSync(join(workspace.tree, 'half'), 'utf8')).toBe('half\n')
  expect((await workspace.capture()).tree).toBe(checkpoint.tree)
})

test('a TERM keeps the work too', async () => {
  const { api, worker, gone } = await working(true)
  worker.kill('SIGTERM')
  expect(await worker.exited).toMatchObject({ code: 0 })
  expect(await gone()).toBe(true)
  expect(api.state.retained).toHaveLength(1)
})

test('an upload that hangs holds the worker up only so long, and nothing is retained', async () => {
  const { api, worker, gone } = await working(true)
  api.state.hangUploads = true
  api.state.ended = true
  expect(await worker.exited).toMatchObject({ code: 0 })
  expect(await gone()).toBe(true)
  expect(api.state.calls).toContain('PUT, left hanging')
  expect(api.state.retained).toEqual([])
})

test('a worker whose place another has taken leaves and uploads nothing', async () => {
  const { api, worker, gone } = await working(true)
  api.state.keeps = false
  api.state.ended = true
  expect(await worker.exited).toMatchObject({ code: 0 })
  expect(await gone()).toBe(true)
  expect([...api.state.store.keys()]).toEqual([])
  expect(api.state.calls.filter((name) => name === 'POST retain')).toEqual([])
})

test('a session that keeps no work is asked for nothing', async () => {
  const { api, worker } = await working(false)
  api.state.ended = true
  await worker.exited
  expect(api.state.calls).not.toContain('POST uploads')
})

test('files that equal the last checkpoint are not saved again', async () => {
  const session = await startSession({ keep_workspace_on_cancel: true })
  const start = await session.prepare()
  const mark = join(session.folder, 'started')
  session.api.give(
    aCommand('Code', { ...session.facts, ...start, engine_command: `touch ${mark}; exec sleep 600` }),
  )
  await exists(mark)
  session.api.state.ended = true
  expect(await session.worker.exited).toMatchObject({ code: 0 })
  expect(session.api.state.retained).toEqual([])
  expect([...session.api.state.store.keys()]).toEqual([])
})

test('a cancel ends an engine that waits for an answer', async () => {
  const session = await startSession({ keep_workspace_on_cancel: true })
  const start = await session.prepare()
  const engine_command =
    'echo half > half; curl -sS "$GATEHOUSE_TOOLS_URL/ask_user" -H "Authorization: Bearer $GATEHOUSE_TOOLS_TOKEN" -d \'{"prompt":"Which?"}\''
  session.api.give(aCommand('Code', { ...session.facts, ...start, engine_command }))
  await eventually(() => session.api.questions.size === 1)
  session.api.state.ended = true
  expect(await session.worker.exited).toMatchObject({ code: 0 })
  expect(session.api.state.retained).toHaveLength(1)
})

test('a cancel while the work is judged retains nothing anew: the checkpoint holds it', async () => {
  const session = await startSession({ keep_workspace_on_cancel: true })
  const start = await session.prepare()
  const engine_command = 'echo half > half'
  const { checkpoint } = outcome(await session.run('Code', { ...start, engine_command }), 'Code')
  const mark = join(session.folder, 'judging')
  const contract = contractOf(`echo litter > litter; touch ${mark}; sleep 600`)
  session.api.give(aCommand('Validate', { ...session.facts, ...start, checkpoint, contract }))
  await exists(mark)
  session.api.state.ended = true
  expect(await session.worker.exited).toMatchObject({ code: 0 })
  expect(session.api.state.retained).toEqual([])
})

test('a cancel reaches a grandchild of a check', async () => {
  const session = await startSession()
  const start = await session.prepare()
  const mark = join(session.folder, 'checking')
  const check = `(setsid sh -c 'trap "" TERM; touch ${mark}; sleep 600' & wait)`
  session.api.give(aCommand('Baseline', { ...session.facts, ...start, contract: contractOf(check) }))
  await exists(mark)
  session.api.state.ended = true
  expect(await session.worker.exited).toMatchObject({ code: 0 })
  expect(await liveProcesses({ group: null, mark: session.worker.id })).toEqual([])
})

test('a cancel reaches a setup command', async () => {
  const session = await startSession()
  const start = await session.prepare()
  const mark = join(session.folder, 'setting-up')
  const contract = { ...contractOf('true'), setup: [`touch ${mark}; sleep 600`] }
  session.api.give(aCommand('Baseline', { ...session.facts, ...start, contract }))
  await exists(mark)
  session.api.state.ended = true
  expect(await session.worker.exited).toMatchObject({ code: 0 })
  expect(await liveProcesses({ group: null, mark: session.worker.id })).toEqual([])
})

test('a cancel ends a fetch from a host that never answers', async () => {
  const asked = Promise.withResolvers<void>()
  const closed = Promise.withResolvers<void>()
  const host = createServer((socket) => {
    asked.resolve()
    // What came is taken, or the end behind it would never be seen.
    socket.on('error', () => {}).on('close', () => closed.resolve())
    socket.resume()
  })
  host.listen(0, '127.0.0.1')
  onTestFinished(() => void host.close())
  await new Promise((resolve) => host.once('listening', resolve))
  const at = host.address()
  const port = typeof at === 'object' ? at?.port : 0
  const session = await startSession({ repo: `https://127.0.0.1:${port}/repository.git` })
  session.api.give(aCommand('Preflight', session.facts))
  await asked.promise
  session.api.state.ended = true
  expect(await session.worker.exited).toMatchObject({ code: 0 })
  // The far side saw git go.
  await closed.promise
  expect(existsSync(join(session.folder, 'runs', session.api.sessionId))).toBe(false)
})
