import { describe, expect, it } from 'vitest'
import type { CheckResult } from '../../../lib/contract/schema.ts'
import type { Document } from '../../../lib/session/document.ts'
import { mayIterate, rule } from '../../../lib/session/policy.ts'
import { aResult, at, epochMs, newSession } from '../../support/sessions.ts'

const { document } = newSession()
const ruling = (results: CheckResult[], more: Partial<Document> = {}, now = epochMs) => {
  const facts = { last_check_results: results, iterations: 1, deadline_at: at(60_000), ...more }
  return rule({ ...document, ...facts }, now)
}
const passed = aResult()
const failed = aResult({ name: 'red', verdict: 'failed' })
const unrun = aResult({ name: 'unrun', verdict: 'could_not_run' })
const flaky = aResult({ name: 'flaky', verdict: 'flaky' })
const captured = aResult({ name: 'shape', verdict: 'captured' })
const last = { iterations: 8 }

describe('the ruling on an evaluation', () => {
  it.each<[string, CheckResult[], Partial<Document>, object]>([
    ['all passed', [passed, passed], {}, { kind: 'accept' }],
    ['all passed at the last iteration', [passed], last, { kind: 'accept' }],
    ['passed, with a capture beside it', [passed, captured], {}, { kind: 'accept' }],
    ['one failed', [passed, failed], {}, { kind: 'repair' }],
    ['one flaky', [passed, flaky], {}, { kind: 'repair' }],
    ['one could not run', [passed, unrun], {}, { kind: 'repair' }],
    ['failed, no iteration left', [failed], last, { kind: 'fail', failure_kind: 'error' }],
    ['failed, no repair left', [failed], { iterations: 3 }, { kind: 'fail', failure_kind: 'error' }],
    ['failed, one repair left', [failed], { iterations: 2 }, { kind: 'repair' }],
    ['failed, no repair wanted', [failed], { repair_invokes: 0 }, { kind: 'fail', failure_kind: 'error' }],
    ['failed in a second round', [failed], { iterations: 4, round_started_at: 3 }, { kind: 'repair' }],
    ['flaky, no iteration left', [flaky], last, { kind: 'fail', failure_kind: 'error' }],
    ['could not run, none left', [unrun], last, { kind: 'fail', failure_kind: 'infrastructure' }],
    [
      'starved by the clock',
      [aResult({ verdict: 'could_not_run', deadline_clamped: true })],
      {},
      { kind: 'fail', failure_kind: 'budget_exhausted' },
    ],
  ])('%s', (_, results, more, expected) => {
    expect(ruling(results, more)).toMatchObject(expected)
  })

  it.each([
    ['nothing was checked', []],
    ['only captures were made', [captured]],
    ['a check says passed of a verdict that is none', [aResult({ verdict: 'could_not_run', passed: true })]],
    ['a check says passed of a failure', [aResult({ verdict: 'failed', passed: true })]],
  ])('is never green when %s', (_, results) => {
    expect(ruling(results).kind).not.toBe('accept')
    expect(ruling(results, last).kind).toBe('fail')
  })

  it('is the budget’s when the run’s time is up, and green is still green then', () => {
    expect(ruling([failed], {}, epochMs + 60_000)).toMatchObject({ failure_kind: 'budget_exhausted' })
    expect(ruling([passed], {}, epochMs + 60_000)).toEqual({ kind: 'accept' })
  })
})

it('lets an iteration begin until the deadline and the ceiling, not at them', () => {
  const at59 = { ...document, deadline_at: at(1000), iterations: 7 }
  expect(mayIterate(at59, epochMs + 999)).toBeNull()
  expect(mayIterate(at59, epochMs + 1000)).toMatch(/time/)
  expect(mayIterate({ ...at59, iterations: 8 }, epochMs)).toMatch(/8 iterations/)
})
