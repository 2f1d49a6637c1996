import { describe, expect, it } from 'vitest'
import { verificationOf } from '../../../lib/session/no-change.ts'
import { requestChanges } from '../../../lib/session/review-decisions.ts'
import { ada } from '../../support/sessions.ts'
import {
  aBaseline,
  aConclusion,
  aFailedDelivery,
  anIdleRun,
  aRun,
  failed,
  passed,
  verification,
} from './results.ts'
import { setOut, setOutTo } from './road.ts'

type Created = Parameters<typeof setOut>[0]
const yes_ship = { by: 'grace' }

/** A session whose review has just been entered. */
const reviewed = (more: Created) => {
  const road = setOutTo('Review', { mode: 'auto', ...more })
  road.enter()
  return road
}

/** A session in which nothing had to be changed, with its review entered. */
const concluded = (more: Created, kind: Parameters<typeof aConclusion>[0] = 'already_satisfied') => {
  const road = setOutTo('Baseline', { mode: 'auto', ...more })
  road.work(aBaseline(passed))
  road.to('Code')
  road.iterate(anIdleRun(), passed)
  road.work(aConclusion(kind))
  road.enter()
  return road
}

describe('yes_ship', () => {
  it('delivers a green change under a trusted contract, in the name of whoever authorised it', () => {
    const { document } = reviewed({ yes_ship })
    expect(document).toMatchObject({ step: 'Deliver', decided_by: 'yes_ship of grace', gate: null })
  })

  it('is a person’s to give: without it the review waits', () => {
    expect(reviewed({}).document).toMatchObject({ step: 'Review', gate: { kind: 'approval' } })
  })

  it('does not ship under a contract that a model derived', () => {
    expect(reviewed({ yes_ship, contract_provenance: 'model_derived' }).document.step).toBe('Review')
  })

  it('does not ship a change of which something is disclosed, and the gate says what', () => {
    const road = setOutTo('Verify', { yes_ship, mode: 'auto' })
    road.work(verification([passed], { disclosed: ['check_configuration', 'outside_link'] }))
    expect(road.enter().document).toMatchObject({
      step: 'Review',
      gate: { context: expect.stringContaining('disclosed: check configuration, outside link') },
    })
  })

  it('does not ship what a person let through red', () => {
    const road = setOut({ yes_ship, mode: 'auto' })
    for (let n = 0; n < 3; n++) road.iterate(aRun(), failed)
    road.gate('advance')
    road.work(verification([failed]))
    expect(road.enter().document).toMatchObject({ step: 'Review', accepted_red: ['unit'] })
  })

  it('never accepts a finding: only the runtime’s own proof does', () => {
    expect(concluded({ yes_ship }, 'not_reproducible').document).toMatchObject({ step: 'Review' })
    const { document } = concluded({ yes_ship, mode: 'supervise' })
    expect(document).toMatchObject({ step: 'Review', review_identity: { kind: 'finding' } })
  })

  it('holds no more once a person has answered at a review', () => {
    const road = setOutTo('Review', { yes_ship, mode: 'auto' })
    const review_id = road.document.review_identity?.review_id ?? ''
    road.write(requestChanges(road.item, { review_id, text: 'more' }, ada, road.now))
    expect(road.document.yes_ship).toEqual({ by: 'grace', void: true })
    road.to('Review')
    expect(road.enter().document).toMatchObject({ step: 'Review', decided_by: 'ada' })
  })

  it('is not tried again after a delivery that did not happen', () => {
    const road = reviewed({ yes_ship })
    road.work(aFailedDelivery)
    expect(road.document).toMatchObject({ step: 'Review', delivery_problem: 'the branch moved' })
    expect(road.enter().document.step).toBe('Review')
  })
})

describe('mode auto', () => {
  it('reports by itself what the runtime has verified, in the runtime’s name', () => {
    expect(concluded({}).document).toMatchObject({
      ...{ state: 'reported', decided_by: 'runtime_baseline_green' },
      no_change_finding: { verification: 'runtime_baseline_green' },
    })
  })

  it.each<[string, Created, Parameters<typeof aConclusion>[0]]>([
    ['of a kind that can’t be verified', {}, 'not_reproducible'],
    ['in mode supervise', { mode: 'supervise' }, 'premise_wrong'],
  ])('leaves a finding to a person %s', (_, more, kind) => {
    expect(concluded(more, kind).document).toMatchObject({ step: 'Review', gate: { kind: 'approval' } })
  })

  it('leaves a finding to a person under a contract that a model derived and nobody confirmed', () => {
    const { document } = setOutTo('Review', { mode: 'auto', contract_provenance: 'model_derived' })
    expect(document.contract_provenance).toBe('model_derived')
    expect(verificationOf({ ...document, baseline: [passed] }, 'premise_wrong', true)).toBeNull()
  })

  it('confirms a contract by itself, whose origin stays what it was, but not one that gates nothing', () => {
    const road = setOutTo('Baseline', { mode: 'auto', contract_provenance: 'model_derived' })
    road.work(aBaseline(failed))
    expect(road.enter().document).toMatchObject({ step: 'Plan', contract_provenance: 'model_derived' })
    const empty = setOutTo('Baseline', { mode: 'auto' })
    empty.work(aBaseline(passed))
    expect(empty.enter().document).toMatchObject({ step: 'Confirm', gate: { kind: 'contract' } })
  })
})
