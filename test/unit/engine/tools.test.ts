import { describe, expect, it } from 'vitest'
import {
  createCollector,
  type ReportUsage,
  reportsSchema,
  toolLimits,
  tools,
} from '../../../lib/engine/tools.ts'
import { limits } from '../../../lib/limits.ts'

const now = Date.parse('2030-01-01T00:00:00.000Z')
const collector = () => createCollector(() => now)

const accepts = (name: keyof typeof tools, input: unknown) => tools[name].input.safeParse(input).success
const nomination = { kind: 'premise_wrong', summary: 'It works', evidence: 'I ran it\nand it works' }
const usage = { request_id: 'r', input_tokens: 1, output_tokens: 2, cost_usd: 0.5 }

describe('a call that is taken', () => {
  it.each<[keyof typeof tools, unknown]>([
    ['ask_user', { prompt: 'Tabs\nor spaces?' }],
    ['ask_user', { prompt: '€'.repeat(limits.question / 3) }],
    ['guidance', {}],
    ['report_no_change', nomination],
    ['report_no_change', { ...nomination, kind: 'already_satisfied' }],
    [
      'report_no_change',
      { ...nomination, kind: 'not_reproducible', evidence: 'x'.repeat(toolLimits.evidence) },
    ],
    ['report_status', { status: 'success' }],
    ['report_status', { status: 'failed', reason: 'no network' }],
    ['report_status', { status: 'auth_required', reason: null, reset_at: null }],
    ['report_status', { status: 'rate_limited' }],
    ['report_status', { status: 'rate_limited', reset_at: '2030-02-01T10:00:00+02:00' }],
    ['report_status', { status: 'rate_limited', retry_after_secs: 12.5 }],
    ['report_usage', { request_id: 'r' }],
    ['report_usage', { request_id: 'r', input_tokens: null, output_tokens: 0, cost_usd: 0 }],
  ])('%s %j', (name, input) => {
    expect(accepts(name, input)).toBe(true)
  })
})

describe('a call that is refused', () => {
  it.each<[keyof typeof tools, unknown]>([
    ['ask_user', {}],
    ['ask_user', { prompt: ' \n' }],
    ['ask_user', { prompt: 'x'.repeat(limits.question + 1) }],
    ['ask_user', { prompt: `${'€'.repeat(limits.question / 3)}€` }],
    ['ask_user', { prompt: 'half \ud800' }],
    ['ask_user', { prompt: 'NUL \0' }],
    ['ask_user', { prompt: 'x', urgent: true }],
    ['ask_user', JSON.parse('{"prompt": "x", "__proto__": {}}')],
    ['guidance', { since: 1 }],
    ['report_no_change', { ...nomination, kind: 'done' }],
    ['report_no_change', { ...nomination, summary: 'two\nlines' }],
    ['report_no_change', { ...nomination, summary: 'two\u2028lines' }],
    ['report_no_change', { ...nomination, summary: 'x'.repeat(toolLimits.summary + 1) }],
    ['report_no_change', { ...nomination, evidence: '' }],
    ['report_no_change', { ...nomination, evidence: 'x'.repeat(toolLimits.evidence + 1) }],
    ['report_no_change', { kind: 'premise_wrong', summary: 'no evidence' }],
    ['report_status', {}],
    ['report_status', { status: 'ratelimited' }],
    ['report_status', { status: 'success', verdict: 'pass' }],
    ['report_status', { status: 'success', retry_after_secs: 1 }],
    ['report_status', { status: 'failed', reset_at: '2030-02-01T10:00:00Z' }],
    ['report_status', { status: 'rate_limited', reset_at: '2030-02-01T10:00:00Z', retry_after_secs: 1 }],
    ['report_status', { status: 'rate_limited', reset_at: '2030-02-01 10:00' }],
    ['report_status', { status: 'rate_limited', reset_at: '2030-02-30T10:00:00Z' }],
    ['report_status', { status: 'rate_limited', reset_at: '9999-12-31T23:59:59-12:00' }],
    ['report_status', { status: 'rate_limited', reset_at: 1893456000 }],
    ['report_status', { status: 'rate_limited', retry_after_secs: -1 }],
    ['report_status', { status: 'rate_limited', retry_after_secs: 1e300 }],
    ['report_status', { status: 'failed', reason: 'x'.repeat(limits.reason + 1) }],
    ['report_usage', { ...usage, request_id: '' }],
    ['report_usage', { ...usage, request_id: 'x'.repeat(toolLimits.requestId + 1) }],
    ['report_usage', { ...usage, input_tokens: -1 }],
    ['report_usage', { ...usage, output_tokens: 1.5 }],
    ['report_usage', { ...usage, cost_usd: '0.5' }],
    ['report_usage', { ...usage, cost_usd: toolLimits.costUsd * 2 }],
    ['report_usage', { ...usage, model: 'm' }],
    ['report_usage', null],
    ['report_usage', [usage]],
  ])('%s %j', (name, input) => {
    expect(accepts(name, input)).toBe(false)
  })
})

it('a call at every limit fits into a body even when each character is escaped', () => {
  const escaped = (length: number) => '\\u0041'.repeat(length)
  const body = `{"kind": "already_satisfied", "summary": "${escaped(toolLimits.summary)}", "evidence": "${escaped(toolLimits.evidence)}"}`
  expect(accepts('report_no_change', JSON.parse(body))).toBe(true)
  expect(Buffer.byteLength(body)).toBeLessThan(toolLimits.body)
})

describe('what is collected', () => {
  it('is nothing at first', () => {
    expect(collector().reports()).toEqual({ status: null, nomination: null, usage: null, applied: [] })
  })

  it.each([
    [{ reset_at: '2030-02-01T10:00:00+02:00' }, '2030-02-01T08:00:00.000Z'],
    [{ retry_after_secs: 90 }, '2030-01-01T00:01:30.000Z'],
    [{ retry_after_secs: 0.0001 }, '2030-01-01T00:00:00.001Z'],
    [{}, null],
  ])('a rate limit with %j lifts at %s', (when, reset_at) => {
    const collected = collector()
    collected.status(tools.report_status.input.parse({ status: 'rate_limited', ...when }))
    expect(collected.reports().status).toEqual({ status: 'rate_limited', reason: null, reset_at })
    expect(reportsSchema.parse(collected.reports())).toEqual(collected.reports())
  })

  it('the last status and the last nomination', () => {
    const collected = collector()
    for (const status of ['rate_limited', 'success'])
      collected.status(tools.report_status.input.parse({ status, reason: `it is ${status}` }))
    for (const summary of ['first', 'second'])
      collected.nominate(tools.report_no_change.input.parse({ ...nomination, summary }))
    expect(collected.reports()).toMatchObject({
      status: { status: 'success', reason: 'it is success', reset_at: null },
      nomination: { ...nomination, summary: 'second' },
    })
  })

  it('each piece of guidance once', () => {
    const collected = collector()
    const [one, two] = [
      { id: 'a', text: 'use tabs' },
      { id: 'b', text: 'no, spaces' },
    ]
    expect(collected.handOut([one])).toEqual([one])
    expect(collected.handOut([one, two])).toEqual([two])
    expect(collected.handOut([one, two])).toEqual([])
    expect(collected.reports().applied).toEqual(['a', 'b'])
  })
})

describe('usage', () => {
  const totals = (...reports: Partial<ReportUsage>[]) => {
    const collected = collector()
    for (const report of reports) collected.usage(tools.report_usage.input.parse({ ...usage, ...report }))
    return collected.reports().usage
  }

  it('is the sum of all requests, each of them once', () => {
    expect(totals({}, { request_id: 's' }, {}, { request_id: 's' })).toEqual({
      ...{ requests: 2, input_tokens: 2, output_tokens: 4, cost_usd: 1, complete: true },
    })
  })

  it('a repeat replaces what it tells and keeps what it leaves out', () => {
    expect(totals({ cost_usd: null, output_tokens: 7 }, { cost_usd: 3, output_tokens: null })).toEqual({
      ...{ requests: 1, input_tokens: 1, output_tokens: 7, cost_usd: 3, complete: true },
    })
  })

  it('what one request left out makes the total incomplete, not smaller by a zero', () => {
    expect(totals({}, { request_id: 's', cost_usd: null })).toEqual({
      ...{ requests: 2, input_tokens: 2, output_tokens: 4, cost_usd: 0.5, complete: false },
    })
  })

  it('what no request told is unknown, and a zero that was told is zero', () => {
    expect(totals({ cost_usd: null, input_tokens: 0 })).toEqual({
      ...{ requests: 1, input_tokens: 0, output_tokens: 2, cost_usd: null, complete: false },
    })
  })

  it('of more requests than are told apart is incomplete, and known ones are still repeats', () => {
    const collected = collector()
    const report = (at: number) => collected.usage({ ...usage, request_id: `${at}` })
    for (let at = 0; at < toolLimits.usageRequests; at++) expect(report(at)).toBe('recorded')
    expect(collected.reports().usage).toMatchObject({ complete: true })
    expect(report(0)).toBe('recorded')
    expect(collected.reports().usage).toMatchObject({ complete: true })
    expect(report(toolLimits.usageRequests)).toBe('dropped')
    expect(collected.reports().usage).toEqual({
      requests: toolLimits.usageRequests,
      ...{ input_tokens: 10_000, output_tokens: 20_000, cost_usd: 5_000, complete: false },
    })
  })

  it('at every limit still adds up to whole numbers', () => {
    expect(toolLimits.usageRequests * toolLimits.tokens).toBeLessThan(Number.MAX_SAFE_INTEGER)
  })
})
