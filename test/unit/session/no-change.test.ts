import { describe, expect, it } from 'vitest'
import { confirm } from '../../../lib/session/contract-decisions.ts'
import { mayConclude, verificationOf } from '../../../lib/session/no-change.ts'
import { approve, reject, requestChanges } from '../../../lib/session/review-decisions.ts'
import { aCheckpoint, aContract, ada } from '../../support/sessions.ts'
import { aBaseline, aConclusion, aNomination, anIdleRun, aRun, failed, passed, startTree } from './results.ts'
import { type setOut, setOutTo } from './road.ts'

const nominated = anIdleRun({ nomination: aNomination() })
const reviewed = (road: ReturnType<typeof setOut>) => ({
  review_id: road.document.review_identity?.review_id ?? '',
})

/** A session whose contract was green, or not, before anything was done, at its first run. */
const atCode = (baseline = passed, more: Parameters<typeof setOut>[0] = {}) => {
  const road = setOutTo('Baseline', more)
  road.work(aBaseline(baseline))
  road.to('Code')
  return road
}

describe('a nomination', () => {
  it('decides nothing: with red checks it goes to a person', () => {
    const road = atCode(failed)
    road.iterate(nominated, failed)
    expect(road.document).toMatchObject({ step: 'Verify', consecutive_failures: 0 })
    expect(road.told('verdict_reached')).toMatchObject([{ decided_by_layer: 1, counted: false }])
    road.work(aConclusion('premise_wrong', [failed]))
    expect(road.document).toMatchObject({
      ...{ state: 'needs_approval', step: 'Review', review_identity: { kind: 'finding' } },
      no_change_finding: { kind: 'premise_wrong', verification: null, resolved_at: null },
    })
    road.write(approve(road.item, { ...reviewed(road), comment: 'right' }, ada))
    expect(road.document).toMatchObject({
      ...{ state: 'reported', result_commit: null },
      no_change_finding: { verification: 'human_approved', resolver_comment: 'right' },
    })
  })

  it.each([
    ['that was edited and reverted', anIdleRun({ touched: true, nomination: aNomination() })],
    ['with changes in it', aRun({ nomination: aNomination() })],
  ])('on a tree %s is not heard', (_, run) => {
    const road = atCode(failed)
    road.iterate(run, failed)
    expect(road.document).toMatchObject({ step: 'Code', mutated: true, consecutive_failures: 1 })
  })

  it('is not heard once any earlier run has written to a file', () => {
    const road = atCode(failed)
    road.iterate(aRun(), failed)
    road.iterate(nominated, failed)
    expect(road.document).toMatchObject({ step: 'Code', mutated: true, consecutive_failures: 2 })
  })

  it('that a verification did not bear out is not heard a second time', () => {
    const road = atCode(failed)
    road.iterate(nominated, failed)
    road.work({ ...aConclusion('premise_wrong', [failed]), review: null })
    expect(road.document).toMatchObject({ step: 'Decide', nomination: null })
    expect(road.enter().document).toMatchObject({ step: 'Code', consecutive_failures: 1 })
  })

  it('that a person does not accept is resolved so', () => {
    const road = atCode(failed)
    road.iterate(nominated, failed)
    road.work(aConclusion('premise_wrong', [failed]))
    const again = requestChanges(road.item, { ...reviewed(road), text: 'look again' }, ada, road.now)
    expect(again.facts).toContainEqual({
      type: 'finding_resolved',
      data: { accepted: false, comment: 'look again', verification: null },
    })
    road.write(reject(road.item, { ...reviewed(road), reason: 'no' }, ada))
    expect(road.document).toMatchObject({
      ...{ state: 'abandoned', no_change_finding: { verification: null, resolver_comment: 'no' } },
    })
  })
})

describe('green checks with nothing changed', () => {
  it('are a finding when no file was written to, and a failure when one was', () => {
    const clean = atCode()
    clean.iterate(anIdleRun(), passed)
    expect(clean.work(aConclusion('already_satisfied')).document).toMatchObject({
      ...{ state: 'needs_approval', no_change_finding: { verification: 'runtime_baseline_green' } },
    })
    const reverted = atCode()
    reverted.iterate(anIdleRun({ touched: true }), passed)
    expect(reverted.work(aConclusion('already_satisfied')).document).toMatchObject({
      ...{ state: 'failed', failure_kind: 'error', no_change_finding: null },
    })
  })

  it('are approved by a person as theirs, whatever the runtime could say for them', () => {
    const road = atCode()
    road.iterate(anIdleRun(), passed)
    road.work(aConclusion('already_satisfied'))
    road.write(approve(road.item, { ...reviewed(road), comment: null }, ada))
    expect(road.document).toMatchObject({
      ...{ state: 'reported', no_change_finding: { verification: 'human_approved' } },
    })
  })

  it('need a finding that says what was found', () => {
    const road = atCode()
    road.iterate(anIdleRun(), passed)
    const { review, ...rest } = aConclusion('premise_wrong')
    const bare = review && { ...review, finding: null }
    expect(() => road.work({ ...rest, review: bare })).toThrow(
      expect.objectContaining({ code: 'invalid_request' }),
    )
  })
})

describe('what the runtime verifies', () => {
  const green = { ...atCode().document, contract_provenance: 'operator_supplied' as const }

  it.each([
    ['premise_wrong', 'runtime_baseline_green'],
    ['already_satisfied', 'runtime_baseline_green'],
    ['not_reproducible', null],
  ] as const)('of %s is %s', (kind, verification) => {
    expect(verificationOf(green, kind, true)).toBe(verification)
  })

  it.each([
    ['operator_supplied', 'runtime_baseline_green'],
    ['human_confirmed', 'runtime_baseline_green'],
    ['runtime_generated', 'runtime_baseline_green'],
    ['model_derived', null],
    [null, null],
  ] as const)('under a contract that is %s is %s', (contract_provenance, verification) => {
    expect(verificationOf({ ...green, contract_provenance }, 'premise_wrong', true)).toBe(verification)
  })

  it('is nothing when the baseline was red, was not measured, or the checks are not green now', () => {
    expect(verificationOf({ ...green, baseline: [failed] }, 'premise_wrong', true)).toBeNull()
    expect(verificationOf({ ...green, baseline: [] }, 'premise_wrong', true)).toBeNull()
    expect(verificationOf(green, 'premise_wrong', false)).toBeNull()
  })

  it('is nothing for a contract that was put in at its confirmation, for it was never measured', () => {
    const road = setOutTo('Baseline')
    road.work(aBaseline(passed))
    const contract = aContract({ setup: ['make'] })
    const contract_hash = road.document.contract_hash ?? ''
    road.write(confirm(road.item, { contract_hash, contract }, ada))
    expect(verificationOf(road.document, 'premise_wrong', true)).toBeNull()
  })
})

describe('nothing can be concluded', () => {
  const { document } = setOutTo('Code')

  it('unless the files are those of the start, and no engine wrote to any', () => {
    expect(mayConclude(document)).toBe(true)
    expect(mayConclude({ ...document, mutated: true })).toBe(false)
    expect(mayConclude({ ...document, checkpoint: aCheckpoint() })).toBe(false)
  })

  it('without a start to compare with', () => {
    expect(mayConclude({ ...document, start_tree: null })).toBe(false)
    expect(mayConclude({ ...document, start_tree: null, checkpoint: null })).toBe(false)
  })

  it('by a session that goes on from retained work, though it be that of the start', () => {
    const checkpoint = { ...aCheckpoint(), tree: startTree }
    expect(mayConclude(setOutTo('Code', { checkpoint }).document)).toBe(false)
  })
})
