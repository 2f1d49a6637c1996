import { describe, expect, it } from 'vitest'
import { limits } from '../../../lib/limits.ts'
import { steer } from '../../../lib/session/controls.ts'
import { requestChanges } from '../../../lib/session/review-decisions.ts'
import { ada } from '../../support/sessions.ts'
import { aRun, failed, validation } from './results.ts'
import { setOut, setOutTo } from './road.ts'

const statuses = (road: ReturnType<typeof setOut>) =>
  road.told('operator_guidance').map(({ text, status }) => `${text} ${status}`)

describe('guidance', () => {
  it('is accepted at every step until the end', () => {
    const road = setOut()
    const seen = new Set<string>()
    while (road.document.step !== 'Settle') {
      seen.add(road.document.step)
      road.write(steer(road.item, road.document.step, ada))
      road.onward()
    }
    expect(road.document.steering_messages).toEqual([...seen])
    expect(() => steer(road.item, 'late', ada)).toThrow(expect.objectContaining({ code: 'already_decided' }))
  })

  it('is applied in order, each once, when an engine has been given it', () => {
    const road = setOutTo('Code')
    for (const text of ['a', 'b', 'c']) road.write(steer(road.item, text, ada))
    expect(road.document).toMatchObject({ steering_messages: ['a', 'b', 'c'], guidance_applied: 0 })
    road.work(aRun({ guidance_applied: 2 }))
    expect(road.document.guidance_applied).toBe(2)
    expect(statuses(road).slice(3)).toEqual(['a applied', 'b applied'])
    road.to('Review')
    const review_id = road.document.review_identity?.review_id ?? ''
    road.write(requestChanges(road.item, { review_id, text: 'd' }, ada, road.now))
    road.work(aRun({ guidance_applied: 4 }))
    expect(statuses(road).slice(5)).toEqual(['d accepted', 'c applied', 'd applied'])
    expect(road.document).toMatchObject({ steering_messages: ['a', 'b', 'c', 'd'], guidance_applied: 4 })
  })

  it.each([0, 1, 99])(
    'that a worker says it gave %i of is never applied twice, nor what was not accepted',
    (count) => {
      const road = setOutTo('Code')
      road.write(steer(road.item, 'a', ada))
      road.work(aRun({ guidance_applied: 1 }))
      road.work(validation(failed))
      road.enter()
      road.work(aRun({ guidance_applied: count }))
      expect(road.document.guidance_applied).toBe(1)
    },
  )

  it('outlives a run that was lost, unapplied', () => {
    const road = setOutTo('Code')
    road.write(steer(road.item, 'a', ada))
    road.enter()
    road.lose()
    expect(road.document).toMatchObject({ steering_messages: ['a'], guidance_applied: 0 })
  })

  it('is bounded for the session as a whole', () => {
    const road = setOut()
    const text = 'é'.repeat(limits.steering / 2)
    for (let n = 0; n < limits.guidance / limits.steering; n++) road.write(steer(road.item, text, ada))
    expect(() => steer(road.item, 'x', ada)).toThrow(
      expect.objectContaining({
        code: 'invalid_request',
        errors: [expect.objectContaining({ path: 'text' })],
      }),
    )
  })
})
