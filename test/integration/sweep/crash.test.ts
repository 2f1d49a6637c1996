import { DeleteCommand } from '@aws-sdk/lib-dynamodb'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { newId } from '../../../lib/ids.ts'
import type { Fact } from '../../../lib/journal/facts.ts'
import { limits } from '../../../lib/limits.ts'
import type { Runtime } from '../../../lib/session/item.ts'
import type { Clients } from '../../../lib/store/clients.ts'
import { itemKey, objectKey } from '../../../lib/store/keys.ts'
import { Crash, crashAt } from '../../support/pieces.ts'
import { aCheckpoint, aSeal, sessionAt, sha } from '../../support/sessions.ts'
import { type Bench, freshTeam, gateFact, type Id, minute, startBench } from './bench.ts'

let bench: Bench
beforeAll(async () => {
  bench = await startBench()
}, 60_000)
afterAll(() => bench.close())

type When = 'before' | 'after'
/** Every so many calls are tried. */
const every = Number(process.env.GATEHOUSE_FAULTS_STEP ?? 4)

/** The process ends at its n-th call: that one fails, made or not, and none that follows is made. */
const dieAt = ({ dynamo, s3, sfn }: Clients, n: number, when: When) => {
  const state = { calls: 0, fired: false }
  const pass = async <Answer>(call: () => Promise<Answer>): Promise<Answer> => {
    state.calls += 1
    if (state.calls < n) return call()
    if (state.calls === n && when === 'after') await call()
    state.fired = true
    throw new Crash(`call ${n}, ${when}`)
  }
  const options = { step: 'initialize', name: 'crash', override: true } as const
  dynamo.middlewareStack.add((next) => (args) => pass(() => next(args)), options)
  s3.middlewareStack.add((next) => (args) => pass(() => next(args)), options)
  sfn.middlewareStack.add((next) => (args) => pass(() => next(args)), options)
  return state
}
const disarm = () => crashAt(bench.pieces.clients, 0, 'before')

const inMs = (ms: number) => new Date(bench.clock.now + ms).toISOString()
const update = (id: Id, runtime: Partial<Runtime>) =>
  bench.platform.sessions.update(id, () => ({ actor: { kind: 'system', id: 'test' }, facts: [], runtime }))

const reviewed: Fact = {
  type: 'diff_ready',
  data: {
    review: {
      ...{ review_id: newId('rev'), kind: 'change', base: sha('a'), commit: sha('e'), tree: sha('d') },
      contract_hash: '',
    },
    ...{ stat: { files: 1, insertions: 1, deletions: 0 }, patch_full_bytes: 1, body_artifact: 'body' },
    ...{ disclosed: [], checkpoint: aCheckpoint() },
  },
}
const prepared: Fact = {
  type: 'workspace_prepared',
  data: { base: sha('a'), start_commit: sha('a'), tree: sha('d'), warnings: [] },
}

/** What is wrong with a session when the sweep comes. */
const troubles: [string, () => Promise<Id>][] = [
  ['nothing of it was begun', () => bench.put({ ...sessionAt('created', 'Preflight'), team: freshTeam() })],
  [
    'its gate expired with its answer untaken',
    async () => {
      const facts = [gateFact('approval', inMs(minute))]
      const id = await bench.session('needs_approval', 'Review', { facts })
      await update(id, { task: { step: 'Review', token: await bench.pieces.tokenOf(id.id) } })
      return id
    },
  ],
  [
    'its worker is lost, which had a command in hand',
    async () => {
      const id = await bench.session('running', 'Code')
      const worker = newId('wrk')
      await update(id, {
        task: { step: 'Code', token: await bench.pieces.tokenOf(id.id) },
        command: { id: newId('cmd'), step: 'Code', issued_at: inMs(0) },
        compute: { id: worker, status: 'live', started_at: inMs(0), stopped_at: null },
        lease: { epoch: 1, worker_id: worker, expires_at: inMs(1), claim: null },
      })
      return id
    },
  ],
  [
    'its execution was stopped at its review',
    async () => {
      const facts = [prepared, reviewed, gateFact('approval')]
      const id = await bench.session('needs_approval', 'Review', { facts })
      await bench.stopExecution(`${id.id}-1`)
      return id
    },
  ],
  [
    'its execution was stopped once too often',
    async () => {
      const data = { step: 'Code' as const, cause: 'Test', detail: '', count: limits.infraFailures - 1 }
      const id = await bench.session('running', 'Code', {
        facts: [{ type: 'infrastructure_fault', data }],
      })
      await bench.platform.admission.take(id.team, id.id)
      await bench.stopExecution(`${id.id}-1`)
      return id
    },
  ],
  [
    'it ended, and its slot, its worker and its execution did not',
    async () => {
      const id = await bench.session('merged', 'Settle')
      await bench.worker(id)
      await bench.platform.admission.take(id.team, id.id)
      // A neighbour that is due has the sweep come to the team.
      await bench.session('running', 'Code', { team: id.team })
      await update(id, { settled: true })
      return id
    },
  ],
]

/** Where a session has got to, with all that is outside of its item. */
const placeOf = async (id: Id) => {
  const { document, runtime, outbox } = await bench.item(id)
  const executions: string[] = []
  for (let attempt = 1; attempt <= runtime.attempt; attempt++)
    executions.push(await bench.statusOf(`${id.id}-${attempt}`))
  const workers = (await bench.platform.compute.list()).filter(({ session_id }) => session_id === id.id)
  const slots = (await bench.platform.admission.slots(id.team)).map(({ session_id }) => session_id)
  await bench.requireWhole(id)
  return {
    ...{ executions, workers, holds: slots.includes(id.id), outbox, answers: runtime.answers.length },
    ...{
      settled: runtime.settled,
      sealed: runtime.sealed !== null,
      task: runtime.task,
      compute: runtime.compute?.status ?? null,
    },
    ...{
      state: document.state,
      step: document.step,
      failure: document.failure_kind,
      gate: document.gate?.kind,
    },
    ...{ faults: document.infra_failures, restored: document.review_restored },
    told: (await bench.types(id)).filter((type) => type !== 'repaired'),
  }
}

/** Takes all sessions of a team out of the next round's way. */
const clear = async ({ team }: Id): Promise<void> => {
  const { TableName, items } = {
    TableName: bench.pieces.settings.table,
    items: (await bench.platform.sessions.page(team, { limit: 100, before: null, filter: {} })).items,
  }
  for (const { id } of items) {
    const { runtime } = await bench.platform.sessions.require({ team, id })
    await bench.pieces.clients.dynamo.send(new DeleteCommand({ TableName, Key: itemKey.session(team, id) }))
    for (let attempt = 1; attempt <= runtime.attempt; attempt++)
      await bench.platform.machine.stop(
        bench.platform.machine.executionArn(`${id}-${attempt}`),
        'Test',
        'over',
      )
  }
}

const roundsAfter = async () => {
  for (let n = 0; n < 4; n++) {
    bench.pass(minute)
    await bench.round()
  }
}

const crashes = [
  ['a process that ends', dieAt],
  ['a failure', crashAt],
] as const

it.each(
  troubles.flatMap(([trouble, make]) =>
    crashes.flatMap(([crash, arm]) =>
      (['before', 'after'] as const).map((when, n) => ({
        trouble,
        make,
        crash,
        arm,
        when,
        first: 1 + 2 * n,
      })),
    ),
  ),
)(
  'a session is repaired to the same place after $crash $when any call of a round: $trouble',
  async ({ make, arm, when, first }) => {
    const undisturbed = await make()
    bench.pass(minute)
    await bench.round()
    await roundsAfter()
    const expected = await placeOf(undisturbed)
    await clear(undisturbed)
    for (let n = first; ; n += every) {
      const id = await make()
      bench.pass(minute)
      const crash = arm(bench.pieces.clients, n, when)
      await bench.round().catch((error: unknown) => {
        if (!(error instanceof Crash)) throw error
      })
      const { fired } = crash
      disarm()
      await roundsAfter()
      expect(await placeOf(id), `call ${n}`).toEqual(expected)
      await clear(id)
      if (!fired) {
        expect(n).toBeGreaterThan(10)
        break
      }
    }
  },
  120_000,
)

it.each(['before', 'after'] as const)(
  'a removal is finished after a process ended %s any call of a round',
  async (when) => {
    for (let n = 1; ; n++) {
      const item = sessionAt('merged', 'Settle')
      const runtime = { ...item.runtime, settled: true, start_pending: false, sealed: aSeal() }
      const finished = { ...item.document, updated_at: inMs(0) }
      const id = await bench.put({ ...item, team: freshTeam(), outbox: [], runtime, document: finished })
      await bench.platform.blobs.put(objectKey.bundle(id.team, id.id, 'one'), 'work')
      bench.pass((limits.retention.days * 24 * 60 + 1) * minute)
      const crash = dieAt(bench.pieces.clients, n, when)
      await bench.round().catch(() => {})
      const { fired } = crash
      disarm()
      await roundsAfter()
      expect(await bench.platform.sessions.get(id)).toBeNull()
      expect(await bench.platform.sessions.removing(id)).toBeNull()
      expect((await bench.platform.blobs.list(objectKey.session(id.team, id.id)).next()).done).toBe(true)
      if (!fired) break
    }
  },
  120_000,
)
