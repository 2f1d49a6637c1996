import { StopExecutionCommand } from '@aws-sdk/client-sfn'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { sweep } from '../../functions/sweep/sweep.ts'
import { limits } from '../../lib/limits.ts'
import { useStack } from '../e2e/stack.ts'
import { type Kept, openKept, processesOf, until } from './kept.ts'
import { stalls } from './stall.ts'
import { trivialSession } from './trivial.ts'
import { requireWhole, seeThrough, workersIn } from './whole.ts'

// What is awaited is a fact; how long it takes is the machine's matter.
vi.setConfig({ testTimeout: 120_000 })

const used = useStack()
const opened: { kept?: Kept } = {}
beforeAll(() => {
  opened.kept = openKept(used.home)
})
afterAll(() => opened.kept?.close())
const keptOf = (): Kept => {
  if (!opened.kept) throw new Error('the stack is not started')
  return opened.kept
}

/** Presses Stop on the session's execution as a person in the console would; returns its ARN. */
const pressStop = async (id: string): Promise<string> => {
  const { clients, item, machine } = keptOf()
  const executionArn = await until('it has an execution', async () => (await item(id)).runtime.execution_arn)
  await clients.sfn.send(new StopExecutionCommand({ executionArn, error: 'Console', cause: 'a person' }))
  expect(await machine.status(executionArn)).toBe('ABORTED')
  return executionArn
}

const repair = async () =>
  expect(await sweep(used.stack.platform, { all: true })).toMatchObject({ faults: [] })

const executionsOf = async (id: string) =>
  Object(await used.api.call('GET', `/v1/sessions/${id}/history`)).body.executions

const requireAttempts = async (id: string, statuses: string[]) =>
  expect(await executionsOf(id)).toMatchObject(
    statuses.map((status, at) => ({ name: `${id}-${at + 1}`, attempt: at + 1, status })),
  )

/** Waits until the execution has come back to where the session is. */
const parked = (id: string, step: string) =>
  until(`it is parked at ${step}`, async () =>
    (await keptOf().item(id)).runtime.task?.step === step ? true : null,
  )

/** The machine ends a moment after the session that it has settled. */
const ended = (id: string) =>
  until('its last execution has ended', async () =>
    (await executionsOf(id)).at(-1)?.status === 'RUNNING' ? null : true,
  )

test('a session that was stopped at its review goes on in a new execution, with the same gate', async () => {
  const { api } = used
  const { body, repository } = trivialSession()
  const { id } = await api.start(body)
  const atGate = await api.untilGate(id, 'approval')
  await pressStop(id)
  await repair()
  await parked(id, 'Review')
  expect((await api.get(id)).needs_you).toEqual(atGate.needs_you)
  await requireAttempts(id, ['ABORTED', 'RUNNING'])
  await seeThrough(api, id)
  await requireWhole(api, keptOf(), { id, repository })
  await ended(id)
  await requireAttempts(id, ['ABORTED', 'SUCCEEDED'])
  expect((await api.journal(id)).filter(({ type }) => type === 'gate_opened')).toHaveLength(1)
})

test('a session that waits for a person outlives more stops than work would', async () => {
  const { api } = used
  const { body, repository } = trivialSession()
  const { id } = await api.start(body)
  const atGate = await api.untilGate(id, 'approval')
  const stops = limits.infraFailures + 2
  for (let stop = 1; stop <= stops; stop += 1) {
    await parked(id, 'Review')
    await pressStop(id)
    await repair()
  }
  const still = await api.get(id)
  expect(still).toMatchObject({ needs_you: atGate.needs_you, infra_failures: 0 })
  await seeThrough(api, id)
  await requireWhole(api, keptOf(), { id, repository })
  expect((await keptOf().item(id)).runtime.attempt).toBe(1 + stops)
})

test('an approval that comes while the execution is stopped is kept, and carried out by the next one', async () => {
  const { api } = used
  const { body, repository } = trivialSession()
  const { id } = await api.start(body)
  await api.untilGate(id, 'approval')
  await pressStop(id)
  await api.approve(id)
  await repair()
  await seeThrough(api, id)
  await requireWhole(api, keptOf(), { id, repository })
  await ended(id)
  await requireAttempts(id, ['ABORTED', 'SUCCEEDED'])
})

test('a contract gate stays answerable when its execution was stopped', async () => {
  const { api } = used
  const { body, repository } = trivialSession({ mode: 'supervise' })
  const { id } = await api.start(body)
  const atGate = await api.untilGate(id, 'contract')
  await pressStop(id)
  await repair()
  await parked(id, 'Confirm')
  const again = await api.get(id)
  expect(again.needs_you).toEqual(atGate.needs_you)
  await api.confirm(again)
  await api.untilGate(id, 'approval', again.journal_head.sequence)
  await seeThrough(api, id)
  await requireWhole(api, keptOf(), { id, repository })
})

test.each(['before', 'after'] as const)(
  'an engine that ends %s the sweep has found its execution stopped runs once, in one worker',
  async (when) => {
    const { api } = used
    const places = stalls()
    const { body, repository } = trivialSession({
      engine_command: `${places.shell('engine')}; echo done > file`,
    })
    places.hold('engine')
    const { id } = await api.start(body)
    await places.reached('engine')
    await pressStop(id)
    if (when === 'before') {
      places.release('engine')
      await api.follow(id, ({ type }) => type === 'engine_finished')
      await repair()
    } else {
      await repair()
      await parked(id, 'Code')
      await requireAttempts(id, ['ABORTED', 'RUNNING'])
      places.release('engine')
    }
    await seeThrough(api, id)
    await requireWhole(api, keptOf(), { id, repository })
    expect(places.count('engine')).toBe(1)
    const types = (await api.journal(id)).map(({ type }) => type)
    expect(types.filter((type) => type === 'engine_finished')).toHaveLength(1)
    // One worker for the engine, one that judges until the review, one to deliver.
    expect(types.filter((type) => type === 'lease_taken')).toHaveLength(3)
    await ended(id)
    await requireAttempts(id, ['ABORTED', 'SUCCEEDED'])
  },
)

test('a session whose executions are stopped again and again is given up as infrastructure', async () => {
  const { api } = used
  const places = stalls()
  const { body, repository } = trivialSession({ engine_command: `${places.shell('engine')}; touch file` })
  places.hold('engine')
  const { id } = await api.start(body)
  await places.reached('engine')
  const attempts = limits.infraFailures
  for (let attempt = 1; attempt <= attempts; attempt += 1) {
    expect((await keptOf().item(id)).document).toMatchObject({
      state: 'running',
      infra_failures: attempt - 1,
    })
    await parked(id, 'Code')
    await pressStop(id)
    await repair()
  }
  expect(await api.get(id)).toMatchObject({
    state: 'failed',
    failure_kind: 'infrastructure',
    needs_you: null,
  })
  const { runtime } = await keptOf().settled(id)
  const entries = await api.journal(id)
  expect(await processesOf(workersIn(entries, runtime.compute?.id))).toEqual([])
  expect(await keptOf().slots()).not.toContain(id)
  expect(await api.verify(id)).toMatchObject({ ok: true })
  // The last one is for the end alone: it settles what was given up.
  await ended(id)
  await requireAttempts(id, [...Array.from({ length: attempts }, () => 'ABORTED'), 'FAILED'])
  expect(repository.git('branch', '--list', 'gatehouse/*')).toBe('')
  // What was given up stays given up.
  await repair()
  expect((await keptOf().item(id)).runtime.attempt).toBe(attempts + 1)
})
