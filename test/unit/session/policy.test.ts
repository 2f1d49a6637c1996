import { describe, expect, it } from 'vitest'
import type { CheckResult } from '../../../lib/contract/schema.ts'
import type { Document, Turn } from '../../../lib/session/document.ts'
import { hypotheses, mayIterate, redResults, rule } from '../../../lib/session/policy.ts'
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
const spent = {
  budget_usd: 1,
  usage: { input_tokens: null, output_tokens: null, cost_usd: 1, complete: true },
}

describe('the ruling on an evaluation', () => {
  it.each<[string, CheckResult[], Partial<Document>, object]>([
    ['all passed', [passed, passed], {}, { kind: 'accept' }],
    ['all passed at the last iteration', [passed], last, { kind: 'accept' }],
    ['all passed with the money used up', [passed], spent, { kind: 'accept' }],
    ['passed, with a capture beside it', [passed, captured], {}, { kind: 'accept' }],
    ['one failed', [passed, failed], {}, { kind: 'repair', counted: true }],
    ['one flaky', [passed, flaky], {}, { kind: 'repair', counted: true }],
    ['one could not run', [passed, unrun], {}, { kind: 'repair', counted: false }],
    ['one failed and one could not run', [failed, unrun], {}, { kind: 'repair', counted: true }],
    ['failed, no iteration left', [failed], last, { kind: 'fail', failure_kind: 'error' }],
    ['failed, no repair left', [failed], { iterations: 3 }, { kind: 'fail', failure_kind: 'error' }],
    ['failed, one repair left', [failed], { iterations: 2 }, { kind: 'repair' }],
    ['failed, no repair wanted', [failed], { repair_invokes: 0 }, { kind: 'fail', failure_kind: 'error' }],
    ['failed in a second round', [failed], { iterations: 4, round_started_at: 3 }, { kind: 'repair' }],
    ['failed for the third time', [failed], { consecutive_failures: 2 }, { kind: 'ask', counted: true }],
    ['unrun after two failures', [unrun], { consecutive_failures: 2 }, { kind: 'repair', counted: false }],
    ['unrun, no repair left', [unrun], { iterations: 3 }, { kind: 'ask', counted: false }],
    ['flaky, no iteration left', [flaky], last, { kind: 'fail', failure_kind: 'error' }],
    ['could not run, none left', [unrun], last, { kind: 'fail', failure_kind: 'infrastructure' }],
    ['failed, the money used up', [failed], spent, { kind: 'fail', failure_kind: 'budget_exhausted' }],
    ['only what a person accepted is red', [passed, failed], { accepted_red: ['red'] }, { kind: 'accept' }],
    ['more is red than they accepted', [failed, unrun], { accepted_red: ['red'] }, { kind: 'repair' }],
    [
      'starved by the clock',
      [aResult({ verdict: 'could_not_run', deadline_clamped: true })],
      {},
      { kind: 'fail', failure_kind: 'budget_exhausted', counted: false },
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
    expect(ruling(results, { accepted_red: [] }).kind).not.toBe('accept')
  })

  it('is the budget’s when the run’s time is up, and green is still green then', () => {
    expect(ruling([failed], {}, epochMs + 60_000)).toMatchObject({ failure_kind: 'budget_exhausted' })
    expect(ruling([passed], {}, epochMs + 60_000)).toMatchObject({ kind: 'accept' })
  })
})

describe('the ruling on a turn that was interrupted, with red checks', () => {
  const turn = (status: Turn['status'], reset_at: string | null = null): Partial<Document> => ({
    last_turn: { iteration: 1, status, decided_by_layer: 1, reason: 'why', reset_at },
  })
  const week = 7 * 24 * 3600_000

  it.each([
    ['soon', at(1000), { kind: 'wait', reset_at: at(1000), infra_failures: 1 }],
    ['in a week', at(week), { kind: 'wait' }],
    ['later than that', at(week + 1), { kind: 'fail', failure_kind: 'infrastructure' }],
    ['nobody knows when', null, { kind: 'wait', reset_at: at(60_000), infra_failures: 1 }],
  ])('of a rate limit that lifts %s', (_, reset_at, expected) => {
    expect(ruling([failed], turn('rate_limited', reset_at))).toMatchObject({ ...expected, counted: false })
  })

  it('waits for no limit that would be the fifth fault', () => {
    const more = { ...turn('rate_limited', at(1000)), infra_failures: 4 }
    expect(ruling([failed], more)).toMatchObject({ kind: 'fail', failure_kind: 'infrastructure' })
  })

  it.each(['rate_limited', 'resource_killed', 'timed_out', 'agent_unavailable'] as const)(
    'runs nothing again after %s when time or money is used up',
    (status) => {
      const budget = { kind: 'fail', failure_kind: 'budget_exhausted' }
      const more = turn(status, at(120_000))
      expect(ruling([failed], more, epochMs + 60_000)).toMatchObject(budget)
      expect(ruling([failed], { ...more, ...spent })).toMatchObject(budget)
      expect(ruling([failed], { ...more, iterations: 8 }).kind).toMatch(/retry|wait/)
    },
  )
})

it('a person who is asked reads what is suspect, and what no work has changed', () => {
  const suspicion = 'sh: 1: x: not found'
  const red = aResult({ name: 'red', verdict: 'failed', reason: 'suspect_environment', suspicion })
  const asked = ruling([red, flaky], { consecutive_failures: 2, same_output: ['red', 'unit'] })
  expect(asked.kind).toBe('ask')
  expect(asked.reason).toContain('the output of red is the same as before any work')
  expect(asked.reason).toContain(`the environment of red is suspect: “${suspicion}”`)
  expect(ruling([failed], { consecutive_failures: 2 }).reason).toBe('iteration 1 red: red')
})

describe('the limits of a run', () => {
  it('let an iteration begin until the deadline and the ceiling, not at them', () => {
    const at59 = { ...document, deadline_at: at(1000), iterations: 7 }
    expect(mayIterate(at59, epochMs + 999)).toBeNull()
    expect(mayIterate(at59, epochMs + 1000)).toMatch(/time/)
    expect(mayIterate({ ...at59, iterations: 8 }, epochMs)).toMatch(/8 iterations/)
    expect(mayIterate({ ...at59, deadline_at: null }, Number.MAX_SAFE_INTEGER)).toBeNull()
  })

  it('do not take an unknown cost for any, be it none or too much', () => {
    const unknown = { ...spent.usage, cost_usd: null, complete: false }
    expect(mayIterate({ ...document, budget_usd: 1, usage: unknown }, epochMs)).toBeNull()
    expect(mayIterate({ ...document, ...spent }, epochMs)).toMatch(/1 USD/)
    expect(mayIterate({ ...document, ...spent, budget_usd: 1.01 }, epochMs)).toBeNull()
    expect(mayIterate({ ...document, ...spent, budget_usd: null }, epochMs)).toBeNull()
  })

  it('allow a first pass and its repairs', () => {
    expect(hypotheses(document)).toBe(3)
    expect(hypotheses({ ...document, repair_invokes: 0 })).toBe(1)
  })
})

it('what is red is all that did not pass but captures, and what a person let through', () => {
  const results = [passed, failed, unrun, flaky, captured]
  expect(redResults(results)).toEqual([failed, unrun, flaky])
  expect(redResults(results, ['red', 'flaky'])).toEqual([unrun])
})
