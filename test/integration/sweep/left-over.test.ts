import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { whyIdle } from '../../../functions/sweep/compute.ts'
import { newId } from '../../../lib/ids.ts'
import type { State, Step } from '../../../lib/session/states.ts'
import { askForSlot } from '../../../lib/store/queue.ts'
import { at, epochMs, sessionAt } from '../../support/sessions.ts'
import { type Bench, freshTeam, gateFact, type Id, minute, startBench } from './bench.ts'

let bench: Bench
beforeAll(async () => {
  bench = await startBench()
}, 60_000)
afterAll(() => bench.close())

const compute = (id: string) => ({ id, status: 'live' as const, started_at: at(0), stopped_at: null })
const update = (id: Id, runtime: object) =>
  bench.platform.sessions.update(id, () => ({ actor: { kind: 'system', id: 'test' }, facts: [], runtime }))

describe('a worker that runs', () => {
  it('for a session that is not there is stopped, and the log tells of it', async () => {
    const id = { team: freshTeam(), id: newId('ses') }
    const worker = await bench.worker(id)
    await bench.repair()
    expect(await bench.platform.compute.running(worker)).toBe(false)
    expect(bench.lines.filter((line) => line.id === id.id)).toMatchObject([{ what: 'compute', ...id }])
  })

  it.each(['settled', 'resting'] as const)(
    'for a session that is %s is stopped, and seen to be',
    async (how) => {
      const id = await bench.session('merged', 'Settle', { runtime: { [how]: true } })
      const worker = await bench.worker(id)
      await update(id, { compute: compute(worker) })
      await bench.repair()
      expect(await bench.platform.compute.running(worker)).toBe(false)
      expect((await bench.item(id)).runtime.compute).toMatchObject({ status: 'stopped' })
      expect(await bench.repairs(id)).toEqual(['compute'])
      await bench.requireWhole(id)
    },
  )

  it('for a session that has another one is stopped, and the other is not', async () => {
    const id = await bench.session('running', 'Code')
    const [old, current] = [await bench.worker(id), await bench.worker(id)]
    await update(id, { compute: compute(current) })
    await bench.repair()
    expect(await bench.platform.compute.list()).toContainEqual({
      ...{ id: current, team: id.team, session_id: id.id },
    })
    expect(await bench.platform.compute.running(old)).toBe(false)
    expect((await bench.item(id)).runtime.compute?.status).toBe('live')
    expect(await bench.repairs(id)).toEqual(['compute'])
    await bench.requireWhole(id)
  })

  it('is not in the way of the others when its session can’t be read', async () => {
    const id = { team: freshTeam(), id: newId('ses') }
    const others = await Promise.all([1, 2, 3].map(() => bench.worker({ ...id, id: newId('ses') })))
    const get = bench.platform.sessions.get
    const platform = bench.platform
    const broken = await bench.worker(id)
    platform.sessions.get = (key) => (key.id === id.id ? Promise.reject(new Error('unreadable')) : get(key))
    const { faults } = await bench.round()
    platform.sessions.get = get
    expect(faults.map((fault) => fault.id)).toEqual([broken])
    for (const worker of others) expect(await bench.platform.compute.running(worker)).toBe(false)
    await bench.repair()
  })

  it('is idle also when it was given up for stopped, after a while', () => {
    const item = sessionAt('running', 'Code')
    const worker = { id: 'wrk_1', team: item.team, session_id: item.id }
    const stopped = { ...compute('wrk_1'), status: 'stopped' as const, stopped_at: at(0) }
    const of = (runtime: object) => ({ ...item, runtime: { ...item.runtime, ...runtime } })
    expect(whyIdle(worker, of({ compute: compute('wrk_1') }), epochMs + 9 * minute)).toBeNull()
    expect(whyIdle(worker, of({ compute: stopped }), epochMs + minute - 1)).toBeNull()
    expect(whyIdle(worker, of({ compute: stopped }), epochMs + minute)).not.toBeNull()
  })
})

describe('a slot', () => {
  const holders = async (team: string) =>
    (await bench.platform.admission.slots(team)).map(({ session_id }) => session_id)

  it('of a session that is not there is given back, and goes to the next', async () => {
    const team = freshTeam()
    for (const id of ['ses_gone1', 'ses_gone2']) await bench.platform.admission.take(team, id)
    const waiting = await bench.session('created', 'Admit', { team })
    await askForSlot(bench.platform, team, waiting.id, at(0))
    expect((await bench.item(waiting)).document.step).toBe('Admit')
    bench.pass(minute)
    await bench.repair()
    expect(await holders(team)).toEqual([waiting.id])
    expect((await bench.item(waiting)).document.step).toBe('Preflight')
    const told = bench.lines.filter((line) => line.team === team)
    expect(told.map(({ id, what }) => ({ id, what }))).toEqual([
      { id: 'ses_gone1', what: 'slot' },
      { id: 'ses_gone2', what: 'slot' },
    ])
  })

  it.each<[string, State, Step, object]>([
    ['at a gate', 'contract_proposed', 'Confirm', {}],
    ['at a rate limit', 'running', 'RateLimit', {}],
    ['at rest', 'running', 'Rest', { resting: true }],
    ['that ended', 'merged', 'Settle', { settled: true }],
  ])('of a session %s is given back, and its journal tells of it', async (_, state, step, runtime) => {
    const team = freshTeam()
    const facts = step === 'Confirm' ? [gateFact('contract')] : []
    const idle = await bench.session(state, step, { team, runtime, facts })
    const working = await bench.session('running', 'Code', { team })
    // A session that ended has its journal sealed first.
    await bench.round({ all: true })
    for (const { id } of [idle, working]) await bench.platform.admission.take(team, id)
    bench.pass(minute)
    await bench.repair({ all: true })
    expect(await holders(team)).toEqual([working.id])
    expect(await bench.repairs(idle)).toContain('slot')
    await bench.requireWhole(idle)
  })

  it('of a session that just came to a gate is given back by its own step', async () => {
    const team = freshTeam()
    const opened = gateFact('contract')
    const idle = await bench.session('contract_proposed', 'Confirm', { team, facts: [opened] })
    const later = new Date(bench.clock.now).toISOString()
    await bench.platform.sessions.update(idle, () => ({
      actor: { kind: 'system', id: 'test' },
      facts: [{ ...gateFact('contract'), data: { ...Object(opened.data), opened_at: later } }],
    }))
    await bench.platform.admission.take(team, idle.id)
    bench.pass(minute - 1)
    await bench.round({ all: true })
    expect(await holders(team)).toEqual([idle.id])
  })
})
