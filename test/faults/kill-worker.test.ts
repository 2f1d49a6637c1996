import { readFileSync } from 'node:fs'
import { expect, test, vi } from 'vitest'
import { z } from 'zod'
import { localTeam } from '../../infra/local/admin-token.ts'
import { newSecret } from '../../lib/ids.ts'
import { limits } from '../../lib/limits.ts'
import type { Step } from '../../lib/session/states.ts'
import { type Answer, createClient } from '../e2e/client.ts'
import { useStack } from '../e2e/stack.ts'
import { openKept, processesOf, until, workersOf } from './kept.ts'
import { placeOfCheck, stalls } from './stall.ts'
import { trivialSession } from './trivial.ts'
import { requireWhole, seeThrough } from './whole.ts'

// What is awaited is a fact; how long it takes is the machine's matter.
vi.setConfig({ testTimeout: 120_000 })

const used = useStack()

/** A session whose engine and checks can be held: places `engine`, `baseline`, `validate` and `verify`. */
const heldSession = (engine = 'echo done > file') => {
  const places = stalls()
  const session = trivialSession({
    engine_command: `setsid sleep 300 & ${places.shell('engine')}; ${engine}`,
    contract: {
      checks: [{ name: 'file', command: `${placeOfCheck}; ${places.shell('$place')}; test -e file` }],
    },
  })
  return { ...session, places }
}

const itemOf = (id: string) => used.stack.platform.sessions.require({ team: localTeam, id })

/** The process of the worker that a session has now; its engine and checks are other processes. */
const workerOf = async (id: string): Promise<{ worker: string; pid: number }> =>
  until('a worker runs', async () => {
    const worker = (await itemOf(id)).runtime.compute?.id
    if (worker === undefined) return null
    const marked = new Set(await processesOf([worker]))
    const pid = (await workersOf(used.home)).find((one) => marked.has(one))
    return pid === undefined ? null : { worker, pid }
  })

const killWorkerOf = async (id: string): Promise<string> => {
  const { worker, pid } = await workerOf(id)
  process.kill(pid, 'SIGKILL')
  return worker
}

const historySchema = z.object({
  executions: z.array(
    z.object({ steps: z.array(z.object({ name: z.string(), error: z.string().nullable() })) }),
  ),
})
const faultsIn = async (id: string): Promise<{ name: string; error: string | null }[]> => {
  const { body } = await used.api.call('GET', `/v1/sessions/${id}/history`)
  const { executions } = historySchema.parse(body)
  return executions.flatMap(({ steps }) => steps).filter(({ error }) => error !== null)
}

const finish = async (id: string, repository: ReturnType<typeof trivialSession>['repository']) => {
  await seeThrough(used.api, id)
  const kept = openKept(used.home)
  try {
    await requireWhole(used.api, kept, { id, repository })
  } finally {
    kept.close()
  }
}

const held: [Step, string][] = [
  ['Baseline', 'baseline'],
  ['Code', 'engine'],
  ['Validate', 'validate'],
  ['Verify', 'verify'],
]
test.each(held)(
  'a worker that is killed during %s is replaced, and nothing it started stays',
  async (step, place) => {
    const { body, places, repository } = heldSession()
    places.hold(place)
    const { id } = await used.api.start(body)
    await places.reached(place)
    expect((await itemOf(id)).document).toMatchObject({ step, infra_failures: 0 })
    const killed = await killWorkerOf(id)
    await places.reached(place, 2)
    expect((await itemOf(id)).document).toMatchObject({ step, infra_failures: 1 })
    expect(await processesOf([killed])).toEqual([])
    expect(await faultsIn(id)).toEqual([{ name: step, error: 'WorkerLost: SIGKILL' }])

    places.release(place)
    await finish(id, repository)
    // A check that is red on the untouched tree is run there once more.
    expect(places.count(place)).toBe(place === 'baseline' ? 3 : 2)
    expect((await itemOf(id)).document.infra_failures).toBe(0)
  },
)

test.each<Step>(['Preflight', 'Deliver'])('a worker that is killed at %s is replaced', async (step) => {
  const { body, places, repository } = heldSession()
  const { id } = await used.api.start(body)
  if (step === 'Deliver') {
    await used.api.untilGate(id, 'approval')
    await used.api.approve(id)
  }
  await until(`${step} is in hand`, async () =>
    (await itemOf(id)).runtime.command?.step === step ? true : null,
  )
  const killed = await killWorkerOf(id)
  await finish(id, repository)
  expect(await processesOf([killed])).toEqual([])
  expect(await faultsIn(id)).toEqual([{ name: step, error: 'WorkerLost: SIGKILL' }])
  expect(places.count('engine')).toBe(1)
})

test('what an earlier iteration made is there for the next worker, and what a killed one left is not', async () => {
  const { api } = used
  const places = stalls()
  const engine = [
    'ls > "seen-$GATEHOUSE_ITERATION"',
    'echo half > "half-$GATEHOUSE_ITERATION"',
    places.shell('engine-$GATEHOUSE_ITERATION'),
    'mv "half-$GATEHOUSE_ITERATION" "whole-$GATEHOUSE_ITERATION"',
  ].join('; ')
  const { body, repository } = trivialSession({
    engine_command: engine,
    contract: { checks: [{ name: 'second', command: 'test -e whole-2' }] },
  })
  places.hold('engine-2')
  const { id } = await api.start(body)
  await places.reached('engine-2')
  await killWorkerOf(id)
  await places.reached('engine-2', 2)
  places.release('engine-2')
  await finish(id, repository)
  const { result_branch, iterations } = await api.get(id)
  expect(iterations).toBe(2)
  const shown = (file: string) => repository.git('show', `${result_branch}:${file}`)
  expect(shown('whole-1')).toBe('half')
  expect(shown('seen-2').split('\n')).toEqual(['README.md', 'seen-1', 'seen-2', 'whole-1'])
})

test('a step whose worker is killed five times in a row ends the session as infrastructure', async () => {
  const { body, places, repository } = heldSession()
  places.hold('baseline')
  const { id } = await used.api.start(body)
  for (let kills = 1; kills <= limits.infraFailures; kills += 1) {
    await places.reached('baseline', kills)
    expect((await itemOf(id)).document.infra_failures).toBe(kills - 1)
    await killWorkerOf(id)
  }
  expect(await used.api.untilEnd(id)).toMatchObject({
    state: 'failed',
    failure_kind: 'infrastructure',
    error: expect.stringContaining('5 faults, the last at Baseline: WorkerLost'),
  })
  const kept = openKept(used.home)
  await kept.settled(id)
  expect(await kept.slots()).not.toContain(id)
  kept.close()
  expect(await faultsIn(id)).toHaveLength(limits.infraFailures)
  expect(await used.api.verify(id)).toMatchObject({ ok: true })
  expect(repository.git('branch', '--list', 'gatehouse/*')).toBe('')
})

test('whatever a superseded worker calls is refused and changes nothing', async () => {
  const { body, places, repository } = heldSession()
  places.hold('engine')
  const { id } = await used.api.start(body)
  await places.reached('engine')
  const first = await killWorkerOf(id)
  await places.reached('engine', 2)
  // What the present worker has to say of its start is said by then.
  await until('the second worker’s batch', async () => {
    const { compute } = (await itemOf(id)).runtime
    const told = (await used.api.journal(id)).some(
      ({ type, actor }) => type === 'engine_started' && actor.id === compute?.id,
    )
    return told ? true : null
  })

  const { runtime } = await itemOf(id)
  const second = runtime.compute?.id ?? ''
  const command_id = runtime.command?.id ?? ''
  const worker = async (worker_id: string) => {
    const token = newSecret()
    const principal = { kind: 'worker', team: localTeam, session_id: id, worker_id } as const
    await used.stack.platform.tokens.add(token, principal, null)
    return createClient(used.stack.url, token)
  }
  const fact = { type: 'error', data: { message: 'from the past' } }
  const calls = (api: ReturnType<typeof createClient>, epoch: number): Promise<Answer>[] => [
    api.call('GET', `/worker/v1/command?epoch=${epoch}`),
    api.call('POST', '/worker/v1/heartbeat', { epoch }),
    api.call('POST', '/worker/v1/entries', { epoch, batch_id: 'late', facts: [fact] }),
    api.call('POST', '/worker/v1/uploads', { epoch, uploads: [{ kind: 'artifact', name: 'late.log' }] }),
    api.call('POST', '/worker/v1/complete', {
      ...{ epoch, command_id, facts: [fact] },
      result: { outcome: 'fault', detail: 'from the past' },
    }),
  ]
  const settledPart = async () => {
    const { document, version, journal_head, runtime: now } = await itemOf(id)
    const { command, task, compute, last_batch_id, answers } = now
    const lease = { ...now.lease, expires_at: null }
    return { document, version, journal_head, command, task, compute, last_batch_id, answers, lease }
  }
  const before = await settledPart()
  const old = await worker(first)
  const refused = await Promise.all([
    old.call('POST', '/worker/v1/lease', { claim: newSecret() }),
    ...calls(old, runtime.lease.epoch - 1),
    // The launch is another, whatever epoch it claims.
    ...calls(old, runtime.lease.epoch),
    // The launch is the current one, the lease that it took is not.
    ...calls(await worker(second), runtime.lease.epoch - 1),
  ])
  for (const answer of refused) {
    expect(answer.status).toBe(409)
    expect(used.api.problem(answer).code).toBe('superseded')
  }
  expect(await settledPart()).toEqual(before)
  places.release('engine')
  await finish(id, repository)
  expect(readFileSync(`${repository.directory}/README.md`, 'utf8')).toBe('hello\n')
})
