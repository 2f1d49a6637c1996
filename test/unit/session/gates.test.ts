import { describe, expect, it } from 'vitest'
import { newId } from '../../../lib/ids.ts'
import { limits } from '../../../lib/limits.ts'
import { confirm, revise } from '../../../lib/session/contract-decisions.ts'
import { decideGate, type GateAction } from '../../../lib/session/gate-decisions.ts'
import { needsYou, openGate, shown } from '../../../lib/session/gates.ts'
import { approve } from '../../../lib/session/review-decisions.ts'
import { aContract, ada } from '../../support/sessions.ts'
import { aFailedDelivery, aPreflight, aPreparation, aRun, failed, unrun } from './results.ts'
import { setOut, setOutTo } from './road.ts'

const told = (code: string) => expect.objectContaining({ code })
const decided = (road: ReturnType<typeof setOut>, gate_id: string, action: GateAction = 'advance') => {
  return () => decideGate(road.item, { gate_id, action, note: null }, ada, road.now)
}
const gateOf = (road: ReturnType<typeof setOut>) => road.document.gate?.id ?? 'none'

const atPreflight = () => {
  const road = setOutTo('Preflight')
  road.work(aPreflight('infrastructure'))
  return road
}
const atValidate = () => {
  const road = setOut()
  for (let n = 0; n < 3; n++) road.iterate(aRun(), failed)
  return road
}

describe('what an answer does', () => {
  it.each([
    ['preflight', atPreflight, 'advance', { step: 'Prepare', state: 'created' }],
    ['preflight', atPreflight, 'loop_back', { step: 'Preflight', state: 'created' }],
    ['preflight', atPreflight, 'abort', { step: 'Settle', state: 'abandoned' }],
    ['validate', atValidate, 'advance', { step: 'Verify', state: 'running', accepted_red: ['unit'] }],
    ['validate', atValidate, 'loop_back', { step: 'Code', state: 'running', accepted_red: [] }],
    ['validate', atValidate, 'abort', { step: 'Settle', state: 'abandoned' }],
  ] as const)('at %s, %#: %s', (_, to, action, expected) => {
    const road = to()
    expect(road.gate(action).document).toMatchObject({ ...expected, gate: null, decided_by: 'ada' })
    expect(road.told('gate_resolved').at(-1)).toMatchObject({ action, by: 'ada' })
  })

  it('loops back only where an iteration is left', () => {
    const road = setOut({ max_iterations: 4 })
    for (let n = 0; n < 3; n++) road.iterate(aRun(), unrun)
    road.gate('loop_back')
    road.iterate(aRun(), failed)
    expect(road.document.state).toBe('failed')
    const last = setOut({ max_iterations: 2, repair_invokes: 0 })
    last.iterate(aRun(), unrun)
    expect(last.gate('loop_back').document.step).toBe('Code')
  })
})

describe('a gate', () => {
  it('is answered by its own id alone, once', () => {
    for (const to of [atPreflight, atValidate]) {
      const road = to()
      const first = gateOf(road)
      expect(decided(road, newId('gate'))).toThrow(told('already_decided'))
      road.gate('loop_back')
      expect(decided(road, first)).toThrow(told('already_decided'))
    }
  })

  it('is not answered by what was said to an earlier one', () => {
    const road = atPreflight()
    const first = gateOf(road)
    road.gate('loop_back')
    road.work(aPreflight('infrastructure'))
    expect(gateOf(road)).not.toBe(first)
    expect(decided(road, first)).toThrow(told('already_decided'))
    expect(decided(road, first, 'abort')).toThrow(told('already_decided'))
    expect(road.gate('advance').document.step).toBe('Prepare')
  })

  it('that could not be there yet is told from one that is over', () => {
    const road = setOut()
    expect(decided(road, newId('gate'))).toThrow(told('illegal_transition'))
    road.to('Preflight')
    expect(decided(road, newId('gate'))).toThrow(told('illegal_transition'))
    road.to('Settle')
    expect(decided(road, newId('gate'))).toThrow(told('already_decided'))
  })

  it.each(['Confirm', 'Review'] as const)('at %s is decided by its own call', (step) => {
    const road = setOutTo(step)
    expect(decided(road, gateOf(road))).toThrow(told('illegal_transition'))
  })

  it('has one decision: the second is told so, and one that comes before it is told that too', () => {
    const road = setOutTo('Plan')
    const contract_hash = road.document.contract_hash ?? ''
    const again = () => confirm(road.item, { contract_hash, contract: null }, ada)
    expect(again).toThrow(told('already_decided'))
    const early = () => approve(road.item, { review_id: newId('rev'), comment: null }, ada)
    expect(early).toThrow(told('illegal_transition'))
    expect(() => revise(setOut().item, aContract(), ada)).toThrow(told('illegal_transition'))
    road.to('Deliver')
    expect(early).toThrow(told('already_decided'))
  })

  it('opens anew after a delivery that did not happen, and says why', () => {
    const road = setOutTo('Deliver')
    road.work(aFailedDelivery)
    expect(road.document).toMatchObject({ step: 'Review', state: 'needs_approval' })
    expect(needsYou(road.document)).toMatchObject({
      ...{ kind: 'approval', context: expect.stringContaining('the branch moved') },
    })
    road.to('Settle')
    expect(road.document).toMatchObject({ state: 'merged', delivery_problem: null })
  })

  it('has a deadline, after which the session fails by a kind of its own', () => {
    for (const to of [atPreflight, () => setOutTo('Confirm'), atValidate, () => setOutTo('Review')]) {
      const road = to()
      road.enter()
      road.later(limits.gateMs)
      expect(road.lose('States.Timeout').document).toMatchObject({
        ...{ state: 'failed', failure_kind: 'stalled', gate: null, decided_by: road.document.decided_by },
      })
      expect(road.told('gate_resolved').at(-1)).toMatchObject({ action: 'expire' })
    }
  })

  it('is not over because a step before it ran out of time', () => {
    const road = atValidate()
    expect(road.lose('States.Timeout').document).toMatchObject({
      ...{ step: 'ValidateGate', gate: { kind: 'validate' }, infra_failures: 1 },
    })
  })
})

describe('what a gate shows', () => {
  it('is what a person needs: kind, gate, label and context', () => {
    const { document } = atPreflight()
    expect(needsYou(document)).toEqual({
      ...{ kind: 'preflight', gate_id: document.gate?.id, context: 'no infrastructure' },
      label: expect.stringMatching(/./),
    })
  })

  it('is one line of bounded length, cut between characters', () => {
    expect(shown('a\r\n\tb\u0000c\u009fd')).toBe('a   b<U+0000>c<U+009F>d')
    expect(shown('never \u202egnihton')).toBe('never <U+202E>gnihton')
    const family = '\u{1f468}\u200d\u{1f469}\u200d\u{1f467}'
    expect(shown(`${'x'.repeat(limits.gateContext - 4)}${family}${family}`)).toMatch(/^x+…$/)
    expect(shown('x'.repeat(limits.gateContext))).toHaveLength(limits.gateContext)
    const cut = shown('\u{1f600}'.repeat(limits.gateContext + 1))
    expect([...cut]).toHaveLength(limits.gateContext)
    expect(cut.endsWith('…')).toBe(true)
    expect(cut.isWellFormed()).toBe(true)
  })

  it('is bounded whatever led to it', () => {
    const gate = openGate('validate', 0, { context: '\u0007'.repeat(100_000) })
    expect(gate.type === 'gate_opened' && gate.data.context).toHaveLength(limits.gateContext)
  })
})

describe('what there is to know of where the work comes from', () => {
  it('is in the session, and at the gates of contract and review', () => {
    const warning = 'The session works on commit aaaa alone.'
    const road = setOutTo('Prepare')
    road.work({ ...aPreparation, warnings: [warning] })
    expect(road.document.source_warnings).toEqual([warning])
    road.to('Confirm')
    expect(needsYou(road.document)?.context).toContain(warning)
    road.to('Review')
    expect(needsYou(road.document)).toMatchObject({
      ...{ kind: 'approval', context: expect.stringContaining(warning) },
    })
  })
})
