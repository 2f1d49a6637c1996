import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { expire, overslept } from '../../../functions/sweep/expiry.ts'
import { newId } from '../../../lib/ids.ts'
import type { Runtime } from '../../../lib/session/item.ts'
import type { Step } from '../../../lib/session/states.ts'
import { ada, sessionAt } from '../../support/sessions.ts'
import { type Bench, gateFact, type Id, minute, startBench } from './bench.ts'

let bench: Bench
beforeAll(async () => {
  bench = await startBench()
}, 60_000)
afterAll(() => bench.close())

const inMs = (ms: number) => new Date(bench.clock.now + ms).toISOString()
const park = async (id: Id, step: Step, runtime: Partial<Runtime> = {}) => {
  const token = await bench.pieces.tokenOf(id.id)
  const change = { actor: ada, facts: [], runtime: { ...runtime, task: { step, token } } }
  await bench.platform.sessions.update(id, () => change)
}
const documentOf = async (id: Id) => (await bench.item(id)).document
const ended = (id: Id, status: string) => expect.poll(() => bench.statusOf(`${id.id}-1`)).toBe(status)

describe('what expires', () => {
  it('is a gate that nobody answered: the session ends as stalled, and the machine is told', async () => {
    const facts = [gateFact('approval', inMs(minute))]
    const id = await bench.session('needs_approval', 'Review', { facts })
    await park(id, 'Review')
    bench.pass(minute - 1)
    await bench.round()
    expect((await documentOf(id)).state).toBe('needs_approval')
    bench.pass(1)
    await bench.round()
    expect(await documentOf(id)).toMatchObject({ state: 'failed', failure_kind: 'stalled', gate: null })
    await ended(id, 'SUCCEEDED')
    await bench.round()
    expect(await bench.repairs(id)).toEqual(['gate', 'execution'])
    await bench.repair()
    await bench.requireWhole(id)
  })

  it('is a question that nobody answered: it is an error for its engine, and the session goes on', async () => {
    const asked = { request_id: newId('req'), prompt: 'Which?', deadline_at: inMs(10 * minute) }
    const facts = [{ type: 'user_input_requested' as const, data: asked }]
    const id = await bench.session('running', 'Code', { facts })
    bench.pass(10 * minute)
    await bench.repair()
    expect(await documentOf(id)).toMatchObject({ state: 'running', question: { status: 'expired' } })
    expect(await bench.repairs(id)).toEqual(['question'])
    await bench.requireWhole(id)
  })

  it('is a rate limit, once the machine has not woken by itself', async () => {
    const limit = { reset_at: inMs(10 * minute), reason: 'too many', infra_failures: 0 }
    const facts = [{ type: 'rate_limited' as const, data: limit }]
    const id = await bench.session('running', 'RateLimit', { facts })
    await park(id, 'RateLimit')
    bench.pass(10 * minute)
    await bench.round()
    expect((await documentOf(id)).step).toBe('RateLimit')
    bench.pass(minute)
    await bench.round()
    expect(await documentOf(id)).toMatchObject({ step: 'Code', rate_limit: null })
    await ended(id, 'SUCCEEDED')
    expect(await bench.repairs(id)).toEqual(['rate_limit'])
    await bench.repair()
    await bench.requireWhole(id)
  })

  it('is nothing about a session that has ended', () => {
    const late = Date.parse(inMs(60 * minute))
    const facts = [gateFact('approval', inMs(0))]
    expect(expire(sessionAt('needs_approval', 'Review', facts), late)).not.toBeNull()
    expect(expire(sessionAt('abandoned', 'Settle', facts), late)).toBeNull()
    expect(overslept(sessionAt('abandoned', 'RateLimit'), late)).toBeNull()
  })
})

describe('a worker', () => {
  /** A session whose command a worker has in hand. */
  const working = async (status: 'starting' | 'live', leaseMs: number | null, launched: boolean) => {
    const id = await bench.session('running', 'Code')
    const worker = launched ? await bench.worker(id) : newId('wrk')
    const expires_at = leaseMs === null ? null : inMs(leaseMs)
    const compute = { id: worker, status, started_at: inMs(0), stopped_at: null }
    await park(id, 'Code', {
      compute,
      command: { id: newId('cmd'), step: 'Code', issued_at: inMs(0) },
      lease: { epoch: 1, worker_id: worker, expires_at, claim: null },
    })
    return { id, worker }
  }
  const requireLost = async (id: Id, reason: string) => {
    await bench.round()
    expect((await bench.item(id)).runtime).toMatchObject({
      ...{ task: null, compute: { status: 'stopped' } },
      lease: { worker_id: null, expires_at: null, claim: null },
    })
    await ended(id, 'FAILED')
    const events = await bench.events(id)
    expect(events.find(({ type }) => type === 'compute_stopped')?.data).toMatchObject({ reason })
    expect((await bench.repairs(id))[0]).toBe('lease')
    await bench.round()
    await bench.repair()
    await bench.requireWhole(id)
  }

  it('whose lease expired is ended, and its step is told that it was lost', async () => {
    const { id, worker } = await working('live', 5 * minute, true)
    bench.pass(5 * minute - 1)
    await bench.round()
    expect(await bench.platform.compute.running(worker)).toBe(true)
    bench.pass(1)
    // It is due a while after it was looked at, whatever happens in between.
    bench.pass(minute)
    await requireLost(id, 'its lease expired')
    expect(await bench.platform.compute.running(worker)).toBe(false)
  })

  it('whose process is gone is lost though its lease has not expired', async () => {
    const { id } = await working('live', 60 * minute, false)
    bench.pass(minute)
    await requireLost(id, 'it is gone')
  })

  it('that is on its way up is not lost, and is once it has had its time', async () => {
    const { id } = await working('starting', null, false)
    await bench.round({ all: true })
    expect(await bench.repairs(id)).toEqual([])
    bench.pass(minute)
    await requireLost(id, 'it is gone')
  })

  it('that the service before launched is lost at once', async () => {
    const { id } = await working('starting', null, false)
    bench.pass(1)
    await bench.round({ all: true, startedAt: bench.clock.now })
    expect((await bench.item(id)).runtime.compute?.status).toBe('stopped')
  })
})
