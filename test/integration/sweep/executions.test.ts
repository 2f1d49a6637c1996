import { StartExecutionCommand } from '@aws-sdk/client-sfn'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { suspects, whyUnwanted } from '../../../functions/sweep/executions.ts'
import { newId } from '../../../lib/ids.ts'
import { limits } from '../../../lib/limits.ts'
import { at, sessionAt } from '../../support/sessions.ts'
import { type Bench, freshTeam, gateFact, type Id, minute, startBench } from './bench.ts'

let bench: Bench
beforeAll(async () => {
  bench = await startBench()
}, 60_000)
afterAll(() => bench.close())

const attempts = async (id: Id, count: number) => {
  const found: string[] = []
  for (let attempt = 1; attempt <= count; attempt++) found.push(await bench.statusOf(`${id.id}-${attempt}`))
  return found
}

describe('a session whose execution was stopped', () => {
  it('at a gate is carried on in the next round, long before it is due, and costs nothing', async () => {
    const id = await bench.session('contract_proposed', 'Confirm', { facts: [gateFact('contract')] })
    bench.pass(minute)
    await bench.repair()
    const { gate } = (await bench.item(id)).document
    await bench.stopExecution(`${id.id}-1`)
    await bench.repair()
    const { document, runtime } = await bench.item(id)
    expect({ attempt: runtime.attempt, gate: document.gate, faults: document.infra_failures }).toEqual({
      ...{ attempt: 2, gate, faults: 0 },
    })
    expect(await attempts(id, 2)).toEqual(['ABORTED', 'RUNNING'])
    expect(await bench.repairs(id)).toEqual(['execution'])
    await bench.requireWhole(id)
  })

  it('at work goes on at its step, as one infrastructure fault', async () => {
    const id = await bench.session('running', 'Validate')
    await bench.stopExecution(`${id.id}-1`)
    bench.pass(minute)
    await bench.repair()
    expect((await bench.item(id)).document).toMatchObject({ step: 'Validate', infra_failures: 1 })
    expect(await attempts(id, 2)).toEqual(['ABORTED', 'RUNNING'])
    await bench.requireWhole(id)
  })

  it('again and again at work ends as infrastructure and says so, and in the end leaves nothing running', async () => {
    const id = await bench.session('running', 'Code')
    const worker = await bench.worker(id)
    const compute = { id: worker, status: 'live' as const, started_at: at(0), stopped_at: null }
    await bench.platform.sessions.update(id, () => ({
      actor: { kind: 'system', id: 'test' },
      facts: [],
      runtime: { compute },
    }))
    await bench.platform.admission.take(id.team, id.id)
    for (let attempt = 1; attempt <= limits.infraFailures; attempt++) {
      await bench.stopExecution(`${id.id}-${attempt}`)
      bench.pass(minute)
      await bench.repair()
    }
    const last = limits.infraFailures + 1
    expect((await bench.item(id)).document).toMatchObject({
      ...{ state: 'failed', step: 'Settle', failure_kind: 'infrastructure' },
      error: expect.stringContaining('ended before the session did'),
    })
    expect(await bench.statusOf(`${id.id}-${last}`)).toBe('RUNNING')
    await bench.stopExecution(`${id.id}-${last}`)
    bench.pass(minute)
    await bench.repair()
    const { document, runtime } = await bench.item(id)
    expect(document.execution_stopped).toBe(true)
    expect(runtime).toMatchObject({ settled: true, compute: { status: 'stopped' } })
    expect(await bench.platform.compute.running(worker)).toBe(false)
    expect(await bench.platform.admission.slots(id.team)).toEqual([])
    expect(await bench.statusOf(`${id.id}-${last + 1}`)).toBe('MISSING')
    await bench.requireWhole(id)
  })

  it('after it ended is settled by another one, or by the sweep when those do not come through', async () => {
    const id = await bench.session('abandoned', 'Settle')
    for (let attempt = 1; attempt <= limits.infraFailures + 1; attempt++) {
      await bench.stopExecution(`${id.id}-${attempt}`)
      bench.pass(minute)
      await bench.repair()
    }
    const { document, runtime } = await bench.item(id)
    expect(document).toMatchObject({ state: 'abandoned', failure_kind: null, execution_stopped: true })
    expect(runtime).toMatchObject({ settled: true, attempt: limits.infraFailures + 1 })
    await bench.requireWhole(id)
  })

  it('is carried on once when several rounds find it at the same time', async () => {
    const id = await bench.session('running', 'Validate')
    await bench.stopExecution(`${id.id}-1`)
    bench.pass(minute)
    await Promise.all([1, 2, 3].map(() => bench.round()))
    expect((await bench.item(id)).runtime.attempt).toBe(2)
    expect(await bench.repairs(id)).toEqual(['execution'])
    await bench.repair()
    await bench.requireWhole(id)
  })
})

describe('an execution that runs', () => {
  const runOn = async (id: Id, attempt: number) => {
    await bench.platform.machine.start({ ...id, attempt })
    return `${id.id}-${attempt}`
  }
  const status = (name: string) => expect.poll(() => bench.statusOf(name))

  it('for a session that is not there is stopped, and the log tells of it', async () => {
    const id = { team: freshTeam(), id: newId('ses') }
    const name = await runOn(id, 1)
    await bench.repair()
    await status(name).toBe('ABORTED')
    expect(bench.lines.filter((line) => line.id === id.id)).toMatchObject([{ what: 'execution', ...id }])
  })

  it.each(['settled', 'resting'] as const)(
    'for a session that is %s is stopped, after a while',
    async (how) => {
      const id = await bench.session('merged', 'Settle', { runtime: { [how]: true } })
      await bench.round()
      expect(await bench.statusOf(`${id.id}-1`)).toBe('RUNNING')
      bench.pass(minute)
      await bench.repair()
      await status(`${id.id}-1`).toBe('ABORTED')
      expect(await bench.repairs(id)).toEqual(['execution'])
      await bench.requireWhole(id)
    },
  )

  it('for a session that a later one carries on is stopped', async () => {
    const id = await bench.session('running', 'Code')
    const old = await runOn(id, 7)
    await bench.platform.sessions.update(id, () => ({
      actor: { kind: 'system', id: 'test' },
      facts: [],
      runtime: { attempt: 8, start_pending: true, execution_arn: null },
    }))
    bench.pass(minute)
    await bench.round()
    await bench.round()
    await status(old).toBe('ABORTED')
    await status(`${id.id}-1`).toBe('ABORTED')
    expect(await bench.statusOf(`${id.id}-8`)).toBe('RUNNING')
    await bench.repair()
    await bench.requireWhole(id)
  })

  it('is left alone when it is none of ours', async () => {
    const { executionArn = '' } = await bench.pieces.clients.sfn.send(
      new StartExecutionCommand({
        stateMachineArn: bench.pieces.settings.state_machine_arn,
        name: 'by-hand',
        input: JSON.stringify({ session_id: 'by-hand', team: 'team', attempt: 1 }),
      }),
    )
    await bench.repair()
    expect(await bench.platform.machine.status(executionArn)).toBe('RUNNING')
    await bench.platform.machine.stop(executionArn, 'Test', 'done')
  })

  it('is a suspect when no live session or a later one is known, and not otherwise', () => {
    const [live, gone] = [newId('ses'), newId('ses')]
    const running = new Map(
      [`${live}-9`, `${live}-10`, `${gone}-1`, 'by-hand', `${live}-0`].map((name) => [
        name,
        { arn: name, name, started_at: at(0) },
      ]),
    )
    expect(suspects(running, new Set([live])).map(({ name }) => name)).toEqual([`${live}-9`, `${gone}-1`])
  })

  it('is wanted while its successor is young, which may have been started before it was over', () => {
    const item = sessionAt('running', 'Code')
    const later = { ...item, runtime: { ...item.runtime, attempt: 2 } }
    const name = `${item.id}-2`
    const why = (now: number) =>
      whyUnwanted({ attempt: 1 }, later, {
        now,
        running: new Map([[name, { arn: name, name, started_at: at(0) }]]),
      })
    expect(why(Date.parse(at(minute - 1)))).toBeNull()
    expect(why(Date.parse(at(minute)))).toBe('attempt 2 has taken over')
    expect(whyUnwanted({ attempt: 2 }, later, { now: Date.parse(at(minute)), running: null })).toBeNull()
  })
})
