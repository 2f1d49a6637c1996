import { afterAll, beforeAll, expect, it } from 'vitest'
import { aSeal, sessionAt } from '../../support/sessions.ts'
import { type Bench, freshTeam, gateFact, type Id, minute, startBench } from './bench.ts'

let bench: Bench
beforeAll(async () => {
  bench = await startBench()
}, 60_000)
afterAll(() => bench.close())

/** Sessions that wait at a gate: far more than a page of any listing, in a few teams. */
const count = Number(process.env.GATEHOUSE_WAITING ?? 300)

it('a round costs a few calls, however many sessions wait, and finds the one whose execution was stopped', async () => {
  const teams = [freshTeam(), freshTeam(), freshTeam()]
  const ids: Id[] = []
  for (let n = 0; n < count; n++) {
    const team = teams[n % teams.length]
    ids.push(
      await bench.session('contract_proposed', 'Confirm', {
        facts: [gateFact('contract')],
        ...(team === undefined ? {} : { team }),
      }),
    )
  }
  // A finished one, which nobody looks at.
  const item = sessionAt('merged', 'Settle')
  const runtime = { ...item.runtime, settled: true, start_pending: false, sealed: aSeal() }
  const over = await bench.put({ ...item, team: freshTeam(), outbox: [], runtime })
  bench.pass(minute)
  expect(await bench.round()).toMatchObject({ looked: 0, faults: [] })

  bench.calls.length = 0
  await bench.round()
  expect(bench.calls.length).toBeLessThan(25)
  expect(bench.calls.filter((name) => name === 'DescribeExecutionCommand')).toEqual([])

  const stopped = ids[Math.floor(count / 2)]
  if (!stopped) throw new Error('no sessions')
  await bench.stopExecution(`${stopped.id}-1`)
  bench.calls.length = 0
  expect(await bench.round()).toMatchObject({ looked: 1, faults: [] })
  expect(await bench.repairs(stopped)).toEqual(['execution'])

  // At a start each of them is looked at, and the finished one is not.
  expect(await bench.round({ all: true })).toMatchObject({ looked: count, faults: [] })
  expect((await bench.item(over)).revision).toBe(item.revision)
}, 600_000)
