import { describe, expect, it } from 'vitest'
import { stepOutput } from '../../../lib/session/advance.ts'
import { aResult } from '../../support/sessions.ts'
import { aReport, aRun, failed, validation } from './results.ts'
import { setOutTo } from './road.ts'

const minute = 60_000
const deadline = (road: ReturnType<typeof setOutTo>) => Date.parse(road.document.deadline_at ?? '')
const limitedFor = (ms: number, now: number) =>
  aRun({ report: aReport('rate_limited', new Date(now + ms).toISOString()) })

describe('the run’s one clock', () => {
  it('starts with the run, not with the session', () => {
    const road = setOutTo('Plan', { max_wall_secs: 60 })
    expect(road.document.deadline_at).toBeNull()
    road.later(10 * minute)
    road.enter()
    expect(deadline(road)).toBe(road.now + minute)
  })

  it('admits no iteration once it is over, and keeps the work', () => {
    const road = setOutTo('Code', { max_wall_secs: 60 })
    road.iterate(aRun(), failed)
    road.later(minute)
    expect(road.enter().document).toMatchObject({
      ...{ state: 'failed', failure_kind: 'budget_exhausted', retained_work: true, iterations: 1 },
    })
    expect(road.told('budget_exhausted')).toMatchObject([{ elapsed_secs: 60, iterations: 1 }])
  })

  it('books a check that it starved, though an iteration is left', () => {
    const road = setOutTo('Validate')
    road.work(validation(aResult({ verdict: 'could_not_run', reason: 'deadline', deadline_clamped: true })))
    expect(road.enter().document).toMatchObject({
      ...{ failure_kind: 'budget_exhausted', retained_work: true, consecutive_failures: 0 },
    })
  })

  it('is started anew by a person who sets the work going, and by nobody else', () => {
    const road = setOutTo('Code', { max_wall_secs: 600 })
    const first = deadline(road)
    for (let n = 0; n < 3; n++) {
      road.later(minute)
      road.iterate(aRun(), failed)
      expect(deadline(road)).toBe(first)
    }
    road.later(60 * minute)
    road.gate('loop_back')
    expect(deadline(road)).toBe(road.now + 10 * minute)
    expect(road.document.round_started_at).toBe(3)
  })
})

describe('money', () => {
  const cost = (cost_usd: number | null) =>
    aRun({ usage: { input_tokens: null, output_tokens: null, cost_usd, complete: cost_usd !== null } })

  it('that is used up ends the run, with the work kept', () => {
    const road = setOutTo('Code', { budget_usd: 1 })
    expect(road.iterate(cost(0.5), failed).document.step).toBe('Code')
    expect(road.iterate(cost(0.5), failed).document).toMatchObject({
      ...{ failure_kind: 'budget_exhausted', retained_work: true, usage: { cost_usd: 1, complete: true } },
    })
  })

  it('that nobody knows of is neither none nor too much', () => {
    const road = setOutTo('Code', { budget_usd: 1 })
    road.iterate(cost(null), failed)
    expect(road.document).toMatchObject({ step: 'Code', usage: { cost_usd: null, complete: false } })
    road.iterate(cost(0.25), failed)
    expect(road.document).toMatchObject({ step: 'Code', usage: { cost_usd: 0.25, complete: false } })
  })
})

describe('a rate limit', () => {
  it('is waited for with the clock standing still, and costs no iteration', () => {
    const road = setOutTo('Code', { max_wall_secs: 600 })
    const before = deadline(road)
    road.iterate(limitedFor(60 * minute, road.now), failed)
    expect(road.document).toMatchObject({ step: 'RateLimit', stage: 'code', iteration_open: true })
    road.enter()
    road.later(61 * minute)
    expect(road.lose('States.Timeout').document).toMatchObject({
      step: 'Code',
      rate_limit: null,
      iterations: 1,
    })
    expect(deadline(road)).toBe(before + 61 * minute)
    expect(road.document.infra_failures).toBe(1)
    road.work(aRun())
    expect(road.document).toMatchObject({ step: 'Validate', infra_failures: 0 })
  })

  it('is not over because a step before it ran out of time', () => {
    const road = setOutTo('Code')
    road.iterate(limitedFor(60 * minute, road.now), failed)
    expect(road.lose('States.Timeout').document).toMatchObject({ step: 'RateLimit', infra_failures: 2 })
  })

  it('leaves nothing behind in a session that ends meanwhile', () => {
    const road = setOutTo('Code')
    road.iterate(limitedFor(60 * minute, road.now), failed)
    for (let n = 0; n < 4; n++) road.lose()
    expect(road.document).toMatchObject({ state: 'failed', rate_limit: null })
  })
})

describe('what the machine is told', () => {
  const now = Date.UTC(2030, 0, 1)

  it.each([
    ['a minute', 60_000, 60],
    ['a part of a second', 1, 1],
    ['a second and a part', 1001, 2],
    ['a time that is past', -5000, 1],
  ])('of a wait of %s is at least as many whole seconds', (_, ms, wait) => {
    const reset_at = new Date(now + ms).toISOString()
    expect(stepOutput('RateLimit', '', { reset_at, now }).wait).toBe(wait)
  })

  it.each(['x', '\u0001', '\u{1f600}', '\ud800', '"', '\u20ac'])(
    'is small, of whatever %j its note is made',
    (text) => {
      const output = JSON.stringify(stepOutput('Settle', text.repeat(5000)))
      expect(Buffer.byteLength(output)).toBeLessThan(1700)
    },
  )
})
