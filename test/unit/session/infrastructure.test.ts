import { describe, expect, it } from 'vitest'
import { limits } from '../../../lib/limits.ts'
import { aReport, aRun, failed, passed, validation } from './results.ts'
import { setOutTo } from './road.ts'

const gone = aRun({ status: 'unavailable', exit_code: 127 })
const atLimit = (ms: number, now: number) =>
  aRun({ report: aReport('rate_limited', new Date(now + ms).toISOString()) })

describe('infra_failures', () => {
  it('ends the session at the fifth fault in a row of one stage', () => {
    const road = setOutTo('Validate')
    for (let count = 1; count < limits.infraFailures; count++)
      expect(road.lose().document).toMatchObject({ step: 'Validate', infra_failures: count })
    expect(road.lose().document).toMatchObject({
      ...{ state: 'failed', failure_kind: 'infrastructure', infra_failures: 5 },
      error: expect.stringContaining('5 faults, the last at Validate'),
    })
    expect(road.told('infrastructure_fault')).toHaveLength(5)
  })

  it('counts engines that were not there, and costs them no iteration', () => {
    const road = setOutTo('Code')
    for (let count = 1; count < limits.infraFailures; count++)
      expect(road.iterate(gone, failed).document).toMatchObject({
        ...{ step: 'Code', infra_failures: count, iterations: 1, consecutive_failures: 0, retries_used: 0 },
      })
    expect(road.iterate(gone, failed).document).toMatchObject({ failure_kind: 'infrastructure' })
  })

  it('counts waits for a rate limit, and together with all else', () => {
    const road = setOutTo('Code')
    road.lose()
    expect(road.iterate(gone, failed).document.infra_failures).toBe(2)
    for (const count of [3, 4]) {
      const { document } = road.iterate(atLimit(1000, road.now), failed)
      expect(document).toMatchObject({ step: 'RateLimit', infra_failures: count })
    }
    expect(road.iterate(atLimit(1000, road.now), failed).document).toMatchObject({
      ...{ state: 'failed', failure_kind: 'infrastructure' },
    })
  })

  it('is reset by a transition to the next stage', () => {
    const road = setOutTo('Code')
    road.lose()
    road.lose()
    road.work(aRun())
    expect(road.document).toMatchObject({ step: 'Validate', infra_failures: 0 })
  })

  it('is reset neither by a loop back nor by the look at what an interrupted engine left', () => {
    const road = setOutTo('Validate')
    road.lose()
    road.work(validation(failed))
    expect(road.enter().document).toMatchObject({ step: 'Code', infra_failures: 1 })
    road.work(gone)
    expect(road.document).toMatchObject({ step: 'Validate', infra_failures: 1 })
  })

  it('is not reset by a person who sends a lost run on its way again', () => {
    const road = setOutTo('Code')
    for (let n = 0; n < 4; n++) road.lose()
    expect(road.document).toMatchObject({ step: 'ValidateGate', infra_failures: 4 })
    road.gate('advance')
    expect(road.document).toMatchObject({ step: 'Code', infra_failures: 4 })
    expect(road.lose().document).toMatchObject({ state: 'failed', failure_kind: 'infrastructure' })
  })
})

describe('checkpoint_resumes', () => {
  it('goes up with each run that is made again from its checkpoint, and at the fourth a person is asked', () => {
    const road = setOutTo('Code')
    road.enter()
    for (let count = 1; count <= limits.checkpointResumes; count++) {
      expect(road.lose().document).toMatchObject({ step: 'Code', checkpoint_resumes: count, iterations: 1 })
      road.enter()
    }
    expect(road.lose().document).toMatchObject({
      ...{ step: 'ValidateGate', state: 'running', iteration_open: true },
      gate: { kind: 'validate', cause: 'interrupted', unexpected: true },
    })
    expect(road.told('checkpoint_resumed').map(({ count }) => count)).toEqual([1, 2, 3])
  })

  it.each(['advance', 'loop_back'] as const)(
    'launches the run again on %s, as an ordinary launch',
    (action) => {
      const road = setOutTo('Code')
      road.enter()
      for (let n = 0; n < 4; n++) road.lose()
      expect(road.gate(action).document).toMatchObject({
        ...{ step: 'Code', checkpoint_resumes: 0, accepted_red: [], gate: null, iterations: 1 },
      })
      road.work(aRun())
      expect(road.document).toMatchObject({ step: 'Validate', iterations: 1, checkpoint_resumes: 0 })
    },
  )

  it('can be launched again though it is the last iteration', () => {
    const road = setOutTo('Code', { max_iterations: 1 })
    road.enter()
    for (let n = 0; n < 4; n++) road.lose()
    road.gate('loop_back')
    expect(road.iterate(aRun(), passed).document).toMatchObject({ step: 'Verify', iterations: 1 })
  })

  it('is reset by an ordinary launch', () => {
    const road = setOutTo('Code')
    road.lose()
    expect(road.document.checkpoint_resumes).toBe(1)
    road.iterate(aRun(), failed)
    expect(road.document).toMatchObject({ step: 'Code', checkpoint_resumes: 0 })
  })

  it('is not for other steps: a lost check is run again', () => {
    const road = setOutTo('Validate')
    expect(road.lose().document).toMatchObject({ step: 'Validate', checkpoint_resumes: 0 })
  })

  it('has a ceiling that infrastructure’s can’t hide', () => {
    expect(limits.checkpointResumes).toBeGreaterThan(0)
    expect(limits.checkpointResumes).toBeLessThanOrEqual(limits.infraFailures)
  })
})
