import { describe, expect, it } from 'vitest'
import { foldRecord } from '../../../lib/journal/fold.ts'
import type { LifecycleFact } from '../../../lib/journal/lifecycle-facts.ts'
import type { Document } from '../../../lib/session/document.ts'
import { at, newSession } from '../../support/sessions.ts'
import { aRun } from '../session/results.ts'

const { document } = newSession()
const folded = (before: Partial<Document>, ...facts: LifecycleFact[]): Document =>
  facts.reduce((doc, fact) => foldRecord(doc, fact, at(5000)), { ...document, ...before })

const verdict = (counted: boolean): LifecycleFact => ({
  type: 'verdict_reached',
  data: { green: false, failed: [], not_run: [], decided_by_layer: 0, reason: '', counted },
})

describe('counters', () => {
  const most = Number.MAX_SAFE_INTEGER

  it('saturate, and count only what is a counted failure', () => {
    const full = { consecutive_failures: most, total_failures: most }
    expect(folded(full, verdict(true))).toMatchObject(full)
    expect(folded({}, verdict(true), verdict(false))).toMatchObject({
      ...{ consecutive_failures: 1, total_failures: 1 },
    })
  })

  const step = (
    from: 'Code' | 'Validate' | 'Verify' | 'Decide',
    next: 'Validate' | 'Code' | 'Review' | 'Rest',
  ) => ({ type: 'step_completed', data: { step: from, trigger: 'engine_finished', next } }) as const
  const counted = { consecutive_failures: 2, infra_failures: 3, preflight_retries: 1, total_failures: 4 }

  it.each([
    ['code to validate', 'code', step('Code', 'Validate'), { ...counted, infra_failures: 0 }],
    [
      'validate to ship',
      'validate',
      step('Verify', 'Review'),
      { ...counted, consecutive_failures: 0, infra_failures: 0 },
    ],
    ['back to code', 'validate', step('Decide', 'Code'), counted],
    ['to rest', 'code', step('Code', 'Rest'), counted],
  ] as const)('are reset %s by the rules alone', (_, stage, fact, expected) => {
    expect(folded({ ...counted, stage }, fact)).toMatchObject(expected)
  })
})

/** The record of a run that ended, with what a test is about put over it. */
const finished = (
  more: Partial<Extract<LifecycleFact, { type: 'engine_finished' }>['data']>,
): LifecycleFact => {
  const { outcome: _, checkpoint: __, report: ___, guidance_applied: ____, ...run } = aRun()
  const turn = { iteration: 1, status: 'success', decided_by_layer: 2, reason: '', reset_at: null } as const
  return { type: 'engine_finished', data: { ...run, iteration: 1, engine: 'command', turn, ...more } }
}

describe('usage', () => {
  const used = (cost_usd: number | null, complete: boolean): LifecycleFact =>
    finished({ usage: { input_tokens: null, output_tokens: 3, cost_usd, complete } })

  it('is the sum of what is known, and unknown is not zero', () => {
    expect(folded({}, used(null, false)).usage).toEqual({
      ...{ input_tokens: null, output_tokens: 3, cost_usd: null, complete: false },
    })
    expect(folded({}, used(0.5, true), used(null, false), used(0.25, true)).usage).toEqual({
      ...{ input_tokens: null, output_tokens: 9, cost_usd: 0.75, complete: false },
    })
    expect(folded({}, used(0, true)).usage).toMatchObject({ cost_usd: 0, complete: true })
  })
})

describe('the mutation ledger', () => {
  const wrote = (changed: boolean, touched: boolean) => finished({ changed, touched })

  it('latches with the first write and never clears', () => {
    expect(folded({}, wrote(false, false)).mutated).toBe(false)
    expect(folded({}, wrote(false, true), wrote(false, false)).mutated).toBe(true)
    expect(folded({}, wrote(true, false), wrote(false, false)).mutated).toBe(true)
  })
})
