import { describe, expect, it } from 'vitest'
import { recover } from '../../../lib/session/recover.ts'
import { aRun, failed } from './results.ts'
import { setOut, setOutTo } from './road.ts'

const fault = { error: 'WorkerLost', cause: 'its lease expired', at: 7 }

describe('recovery', () => {
  it('deals with a fault once, however often it is told of it', () => {
    const road = setOutTo('Validate')
    road.write(recover(road.item, fault, road.now))
    expect(recover(road.item, fault, road.now)).toBeNull()
    road.write(recover(road.item, { ...fault, at: 8 }, road.now))
    expect(road.document.infra_failures).toBe(2)
    expect(road.told('infrastructure_fault')).toHaveLength(2)
  })

  it('answers no token: the machine has left the step whose fault it tells', () => {
    for (const end of [1, 5]) {
      const road = setOutTo('Validate')
      road.enter()
      for (let n = 0; n < end; n++) road.lose()
      expect(
        road.item.runtime.answers.filter(({ token }) => token === road.item.runtime.task?.token),
      ).toEqual([])
      expect(road.item.runtime).toMatchObject({ task: null, command: null })
    }
  })

  it('keeps what the machine has still to be told of earlier steps', () => {
    const road = setOutTo('Validate')
    const before = road.item.runtime.answers
    expect(before.length).toBeGreaterThan(0)
    road.enter()
    expect(road.lose().runtime.answers).toEqual(before)
  })

  it('has the worker of the fault replaced by another', () => {
    const road = setOutTo('Validate')
    road.enter()
    const worker = road.item.runtime.compute?.id
    expect(road.lose().runtime.compute).toMatchObject({ id: worker, status: 'stopping' })
    expect(road.enter().runtime.compute).toMatchObject({ status: 'starting' })
    expect(road.item.runtime.compute?.id).not.toBe(worker)
  })

  it('goes on with the same iteration, from the last checkpoint', () => {
    const road = setOut()
    road.iterate(aRun(), failed)
    road.enter()
    expect(road.document.iterations).toBe(2)
    road.lose()
    const { checkpoint } = road.document
    road.enter()
    expect(road.document).toMatchObject({ iterations: 2, checkpoint, consecutive_failures: 1 })
  })

  it('does not change a session at rest but for the count of its faults', () => {
    const road = setOutTo('Rest', { until: 'code' })
    expect(road.lose().document).toMatchObject({ step: 'Rest', stopped: true, infra_failures: 1 })
  })

  it('tells a person in bounds what happened', () => {
    const road = setOutTo('Validate')
    const cause = '\u{1f600}'.repeat(10_000)
    for (let n = 0; n < 5; n++) road.write(recover(road.item, { ...fault, cause, at: n + 1 }, road.now))
    expect(road.document.error?.length).toBeLessThan(600)
    expect(road.document.error?.isWellFormed()).toBe(true)
  })
})
