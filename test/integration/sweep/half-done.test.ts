import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cancel } from '../../../lib/session/controls.ts'
import { ada, sessionAt, system } from '../../support/sessions.ts'
import { type Bench, freshTeam, gateFact, minute, startBench } from './bench.ts'

let bench: Bench
beforeAll(async () => {
  bench = await startBench()
}, 60_000)
afterAll(() => bench.close())

describe('what was decided and not done', () => {
  it('is done, once it is clear that its writer does not: entries and the start of an execution', async () => {
    const id = await bench.put({ ...sessionAt('created', 'Preflight'), team: freshTeam() })
    bench.pass(minute)
    await bench.repair()
    await bench.requireWhole(id)
    expect(await bench.statusOf(`${id.id}-1`)).toBe('RUNNING')
    expect(await bench.repairs(id)).toEqual(['start'])
  })

  it('is done for entries alone', async () => {
    const id = await bench.session('running', 'Code')
    await bench.platform.sessions.update(id, () => ({
      actor: ada,
      facts: [{ type: 'operator_guidance', data: { text: 'More', status: 'accepted', by: 'ada' } }],
    }))
    bench.pass(minute)
    await bench.repair()
    await bench.requireWhole(id)
    expect(await bench.repairs(id)).toEqual(['outbox'])
  })

  it('is not told of where only a worker’s note was missing, and is where its batch was', async () => {
    for (const isThere of [true, false]) {
      const id = await bench.session('running', 'Code')
      const item = await bench.platform.sessions.update(id, ({ journal_head }) => ({
        actor: system,
        facts: [{ type: 'error', data: { message: 'a batch' } }],
        runtime: { receipt: { id: 'receipt', sequence: journal_head.sequence + 1 } },
      }))
      if (isThere) await bench.platform.journals.drain(item)
      bench.pass(minute)
      await bench.repair()
      await bench.requireWhole(id)
      expect(await bench.repairs(id)).toEqual(isThere ? [] : ['outbox'])
    }
  })

  it('is done for a decision whose answer the machine did not get', async () => {
    const id = await bench.session('contract_proposed', 'Confirm', { facts: [gateFact('contract')] })
    const token = await bench.pieces.tokenOf(id.id)
    await bench.platform.sessions.update(id, () => ({
      actor: system,
      facts: [],
      runtime: { task: { step: 'Confirm', token } },
    }))
    await bench.platform.sessions.update(id, (item) => cancel(item, 'enough', ada))
    bench.pass(minute)
    await bench.round()
    await expect.poll(() => bench.statusOf(`${id.id}-1`)).toBe('SUCCEEDED')
    expect((await bench.item(id)).runtime.answers).toEqual([])
    // This machine ends with its one step; the next round finds that and carries the session on.
    bench.pass(minute)
    await bench.repair()
    await bench.requireWhole(id)
    expect(await bench.repairs(id)).toEqual(['answer', 'execution'])
  })

  it('is done without a word where it was decided a moment ago', async () => {
    const id = await bench.session('running', 'Code')
    bench.pass(minute)
    await bench.repair()
    bench.pass(2 * minute)
    await bench.platform.sessions.update(id, () => ({
      actor: ada,
      facts: [{ type: 'operator_guidance', data: { text: 'More', status: 'accepted', by: 'ada' } }],
    }))
    expect(await bench.round()).toMatchObject({ faults: [] })
    await bench.requireWhole(id)
    expect(await bench.repairs(id)).toEqual([])
  })

  it('is all that is done for a session at rest', async () => {
    const item = sessionAt('running', 'Rest')
    const id = await bench.put({
      ...item,
      team: freshTeam(),
      runtime: { ...item.runtime, resting: true, start_pending: false },
    })
    bench.pass(minute)
    await bench.repair()
    await bench.requireWhole(id)
    expect(await bench.repairs(id)).toEqual(['outbox'])
    bench.pass(24 * 60 * minute)
    const before = await bench.item(id)
    await bench.repair({ all: true })
    expect(await bench.item(id)).toEqual(before)
  })
})
