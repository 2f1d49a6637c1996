import { expect, it } from 'vitest'
import { limits } from '../../../lib/limits.ts'
import { revise } from '../../../lib/session/contract-decisions.ts'
import { cancel } from '../../../lib/session/controls.ts'
import { lifecycle } from '../../../lib/session/lifecycle.ts'
import { reject, requestChanges } from '../../../lib/session/review-decisions.ts'
import { aContract, ada } from '../../support/sessions.ts'
import {
  aConclusion,
  aFailedDelivery,
  aNomination,
  anIdleRun,
  aPreflight,
  aReport,
  aRun,
  failed,
  verification,
} from './results.ts'
import { setOut, setOutTo } from './road.ts'

type Road = ReturnType<typeof setOut>
const review = ({ document }: Road) => ({ review_id: document.review_identity?.review_id ?? '' })

/** Roads that together pull every trigger, through what the machine, workers and people can really call. */
const roads: (() => Road)[] = [
  () => {
    const road = setOutTo('Settle')
    road.enter()
    return road
  },
  ...(['advance', 'loop_back', 'abort'] as const).map((action) => () => {
    const road = setOutTo('Preflight')
    road.work(aPreflight('configuration'))
    road.gate(action)
    return road
  }),
  ...(['advance', 'loop_back', 'abort'] as const).map((action) => () => {
    const road = setOut()
    for (let n = 0; n < 3; n++) road.iterate(aRun(), failed)
    road.gate(action)
    return road
  }),
  () => {
    const road = setOutTo('Confirm')
    road.write(revise(road.item, aContract({ setup: ['make'] }), ada))
    return road
  },
  () => {
    const road = setOutTo('Code')
    for (let n = 0; n < 4; n++) road.lose()
    return road
  },
  () => {
    const road = setOut()
    road.iterate(aRun({ status: 'killed', exit_code: null, signal: 'SIGKILL' }), failed)
    road.iterate(aRun({ report: aReport('rate_limited', '2030-01-01T00:01:00.000Z') }), failed)
    road.onward()
    return road
  },
  () => {
    const road = setOutTo('Verify')
    road.work(verification([failed]))
    return road
  },
  () => {
    const road = setOut()
    road.iterate(anIdleRun({ nomination: aNomination() }), failed)
    road.work(aConclusion('premise_wrong', [failed]))
    road.onward()
    return road
  },
  () => {
    const road = setOutTo('Review')
    road.write(requestChanges(road.item, { ...review(road), text: 'more' }, ada, road.now))
    return road
  },
  () => {
    const road = setOutTo('Review')
    road.write(reject(road.item, { ...review(road), reason: 'no' }, ada))
    return road
  },
  () => {
    const road = setOutTo('Deliver')
    road.work(aFailedDelivery)
    return road
  },
  ...(['Validate', 'Verify'] as const).map((step) => () => {
    const road = setOutTo(step)
    for (let n = 0; n < limits.infraFailures; n++) road.lose('SetupFailed')
    road.gate('loop_back')
    return road
  }),
  () => {
    const road = setOutTo('Rest', { until: 'code' })
    road.onward()
    road.work({ outcome: 'failed', failure_kind: 'configuration', error: 'x' })
    return road
  },
  () => {
    const road = setOut()
    road.write(cancel(road.item, null, ada))
    return road
  },
]

it('every row of the lifecycle is pulled by something that can be called', () => {
  const ends = roads.flatMap((go) => go().told('step_completed'))
  const pulled = new Set(ends.map(({ trigger }) => trigger))
  // Rest is entered by whatever leaves the stage that `until` names.
  if (ends.some(({ next }) => next === 'Rest')) pulled.add('stopped')
  expect(lifecycle.map(({ trigger }) => trigger).filter((trigger) => !pulled.has(trigger))).toEqual([])
})
