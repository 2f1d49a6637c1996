import { GetExecutionHistoryCommand } from '@aws-sdk/client-sfn'
import { afterAll, beforeEach, expect, test, vi } from 'vitest'
import { type Stack, startStack } from '../../infra/local/stack.ts'
import { limits } from '../../lib/limits.ts'
import type { Step } from '../../lib/session/states.ts'
import { type Client, createClient } from '../e2e/client.ts'
import { scripted } from '../e2e/engines.ts'
import { temporaryFolder } from '../repositories.ts'
import { openKept, processesOf, workersOf } from './kept.ts'
import { stalls } from './stall.ts'
import { trivialSession } from './trivial.ts'
import { requireWhole, seeThrough, workersIn } from './whole.ts'

// What is awaited is a fact; how long it takes is the machine's matter.
vi.setConfig({ testTimeout: 120_000 })

const home = temporaryFolder()
const faults: string[] = []
const running: { stack: Stack | null } = { stack: null }
const start = () => startStack({ port: 0, home, concurrency: 2, log: (line) => faults.push(line) })

/** Starts the stack on the same folder again, after a clean end of the one before. */
const restart = async (): Promise<Client> => {
  await running.stack?.close()
  expect(await workersOf(home)).toEqual([])
  running.stack = await start()
  return createClient(running.stack.url, running.stack.adminToken)
}

beforeEach(() => {
  faults.length = 0
})
afterAll(() => running.stack?.close())

/** The execution of before the restart reads as aborted, with all that had happened in it. */
const requireAborted = async (id: string, lastStep: Step): Promise<void> => {
  const kept = openKept(home)
  const executionArn = kept.machine.executionArn(`${id}-1`)
  expect(await kept.machine.status(executionArn)).toBe('ABORTED')
  const { events = [] } = await kept.clients.sfn.send(new GetExecutionHistoryCommand({ executionArn }))
  expect(events[0]?.type).toBe('ExecutionStarted')
  expect(events.at(-1)?.type).toBe('ExecutionAborted')
  const entered = events.flatMap(({ stateEnteredEventDetails }) => stateEnteredEventDetails?.name ?? [])
  expect(entered.at(-1)).toBe(lastStep)
  kept.close()
}

const finish = async (
  api: Client,
  of: { id: string; repository: ReturnType<typeof trivialSession>['repository'] },
) => {
  await seeThrough(api, of.id)
  const kept = openKept(home)
  await requireWhole(api, kept, of)
  kept.close()
  expect(faults.join('\n')).toBe('')
}

test('a session whose engine runs while the stack is stopped runs it again after the start, from its checkpoint', async () => {
  const places = stalls()
  const { body, repository } = trivialSession({
    engine_command: `ls > seen; (setsid sleep 300 &) ; ${places.shell('engine')}; echo done > file`,
  })
  places.hold('engine')
  const before = await restart()
  const { id } = await before.start(body)
  await places.reached('engine')
  const workers = workersIn(await before.journal(id), undefined)
  expect(await processesOf(workers)).not.toEqual([])

  const after = await restart()
  expect(await processesOf(workers)).toEqual([])
  await requireAborted(id, 'Code')
  await places.reached('engine', 2)
  places.release('engine')
  await finish(after, { id, repository })
  expect(repository.git('show', `gatehouse/${id.slice(-8)}:seen`)).toBe('README.md\nseen')
})

test('both gates stay open over a restart, and can be answered at once after it', async () => {
  const { body, repository } = trivialSession({ mode: 'supervise' })
  const first = await restart()
  const { id } = await first.start(body)
  const atContract = await first.untilGate(id, 'contract')

  const second = await restart()
  const still = await second.get(id)
  expect(still.needs_you).toEqual(atContract.needs_you)
  await second.confirm(still)
  await requireAborted(id, 'Confirm')
  const atReview = await second.untilGate(id, 'approval', still.journal_head.sequence)

  const third = await restart()
  expect((await third.get(id)).needs_you).toEqual(atReview.needs_you)
  await finish(third, { id, repository })
})

test('sessions that wait for a slot keep their place over a restart', async () => {
  const places = stalls()
  const engine_command = `${places.shell('engine')}; echo done > file`
  places.hold('engine')
  const sessions = [1, 2, 3].map(() => trivialSession({ engine_command }))
  const before = await restart()
  const ids: string[] = []
  for (const { body } of sessions) ids.push((await before.start(body)).id)
  await places.reached('engine', 2)
  expect((await before.get(ids[2] ?? '')).state).toBe('created')

  const after = await restart()
  await places.reached('engine', 4)
  places.release('engine')
  for (const [at, { repository }] of sessions.entries())
    await finish(after, { id: ids[at] ?? '', repository })
})

test('a session outlives more stops in order than faults: none of them is one', async () => {
  const places = stalls()
  const { body, repository } = trivialSession({
    engine_command: `${places.shell('engine')}; echo done > file`,
  })
  places.hold('engine')
  let api = await restart()
  const { id } = await api.start(body)
  const stops = limits.infraFailures + 1
  for (let stop = 1; stop <= stops; stop += 1) {
    await places.reached('engine', stop)
    api = await restart()
  }
  await places.reached('engine', stops + 1)
  expect(await api.get(id)).toMatchObject({ state: 'running', infra_failures: 0, iterations: 1 })
  places.release('engine')
  await finish(api, { id, repository })
})

test('a question goes with the worker that asked it; after the restart its engine asks anew, and is answered', async () => {
  const { body, repository } = trivialSession({
    engine_command: scripted("writeFileSync('file', (await tool('ask_user', { prompt: 'Which?' })).text)"),
  })
  const before = await restart()
  const { id } = await before.start(body)
  const isAsked = ({ type }: { type: string }) => type === 'user_input_requested'
  await before.follow(id, isAsked)
  const first = await before.get(id)

  const after = await restart()
  await after.follow(id, isAsked, first.journal_head.sequence)
  const { question } = await after.get(id)
  expect(question).toMatchObject({ status: 'pending', prompt: 'Which?' })
  expect(question?.request_id).not.toBe(first.question?.request_id)
  const answer = (request_id: string | undefined) =>
    after.call('POST', `/v1/sessions/${id}/answer`, { request_id, text: 'this' })
  expect((await answer(first.question?.request_id)).status).toBe(404)
  expect((await answer(question?.request_id)).status).toBe(200)
  await finish(after, { id, repository })
})

test('a second stack on the folder of a running one is refused, and the first goes on', async () => {
  const api = await restart()
  await expect(start()).rejects.toThrow(/is held by another process/)
  const { body, repository } = trivialSession()
  const { id } = await api.start(body)
  await finish(api, { id, repository })
})
