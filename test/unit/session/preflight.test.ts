import { describe, expect, it } from 'vitest'
import { limits } from '../../../lib/limits.ts'
import { aPreflight } from './results.ts'
import { setOut, setOutTo } from './road.ts'

const failing = (...kinds: Parameters<typeof aPreflight>) => {
  const road = setOutTo('Preflight')
  const fail = () => road.work(aPreflight(...kinds))
  return { road, fail }
}

describe('preflight_retries', () => {
  it('opens a gate for each of three failures, and the fourth ends the session by its kind', () => {
    const { road, fail } = failing('configuration')
    for (let retries = 1; retries <= limits.preflightRetries; retries++) {
      expect(fail().document).toMatchObject({
        ...{ step: 'PreflightGate', state: 'created', preflight_retries: retries },
        gate: { kind: 'preflight', context: 'no configuration' },
      })
      expect(road.gate('loop_back').document).toMatchObject({ step: 'Preflight', gate: null })
    }
    expect(fail().document).toMatchObject({
      ...{ state: 'failed', failure_kind: 'configuration', preflight_retries: 3 },
    })
  })

  it('is reset by a pass', () => {
    const { road, fail } = failing('infrastructure')
    fail()
    road.gate('loop_back')
    expect(road.work(aPreflight()).document).toMatchObject({ step: 'Prepare', preflight_retries: 0 })
  })

  it('is reset by a person’s approval, after which nothing is looked at again', () => {
    const { road, fail } = failing('infrastructure')
    fail()
    expect(road.gate('advance').document).toMatchObject({ step: 'Prepare', preflight_retries: 0, gate: null })
  })

  it('is none of what a lost worker does', () => {
    const road = setOutTo('Preflight')
    expect(road.lose().document).toMatchObject({ step: 'Preflight', preflight_retries: 0, infra_failures: 1 })
  })
})

it('abort at preflight ends the session as abandoned', () => {
  const { road, fail } = failing('infrastructure')
  fail()
  expect(road.gate('abort').document).toMatchObject({
    ...{ state: 'abandoned', step: 'Settle', gate: null, decided_by: 'ada', failure_kind: null },
  })
})

it.each([
  [['infrastructure', 'configuration'], 'configuration'],
  [['configuration', 'auth_required', 'infrastructure'], 'auth_required'],
  [['infrastructure', 'infrastructure'], 'infrastructure'],
] as const)('of %j the kind is %s', (kinds, expected) => {
  const { road, fail } = failing(...kinds)
  for (let n = 0; n < limits.preflightRetries; n++) {
    fail()
    road.gate('loop_back')
  }
  expect(fail().document.failure_kind).toBe(expected)
})

it('all reasons are told, bounded wherever they are kept', () => {
  const problem = { failure_kind: 'configuration', detail: 'x'.repeat(limits.reason) } as const
  const road = setOut()
  road.to('Preflight')
  const problems = Array.from({ length: limits.namedPaths }, () => problem)
  for (let n = 0; n < limits.preflightRetries; n++) {
    road.work({ outcome: 'Preflight', problems })
    expect(road.document.gate?.context).toHaveLength(limits.gateContext)
    road.gate('loop_back')
  }
  road.work({ outcome: 'Preflight', problems })
  expect(road.document.error).toHaveLength(limits.reason)
})
