import { describe, expect, it } from 'vitest'
import { newId } from '../../../lib/ids.ts'
import type { RecordFact } from '../../../lib/journal/facts.ts'
import { limits } from '../../../lib/limits.ts'
import { dueAt } from '../../../lib/session/due.ts'
import { openGate } from '../../../lib/session/gates.ts'
import { arrived, changeItem, type SessionItem } from '../../../lib/session/item.ts'
import { renewLease, takeLease } from '../../../lib/session/worker.ts'
import { aCheckpoint, aSeal, at, epochMs, sessionAt } from '../../support/sessions.ts'

const nothing = { actor: { kind: 'system', id: 'test' } as const, facts: [] }
const hour = 3_600_000
const quiet = { start_pending: false, answers: [] }

/** The item after all that was decided has been carried out, seen at a time. */
const carriedOut = (item: SessionItem, ms: number, runtime: Partial<SessionItem['runtime']> = {}) =>
  changeItem(
    item,
    { ...nothing, looked: true, drained: item.journal_head.sequence, runtime: { ...quiet, ...runtime } },
    at(ms),
  )
const due = (item: SessionItem) => Date.parse(dueAt(item) ?? '') - epochMs

const atGate = (openedAt: number): SessionItem =>
  sessionAt('needs_approval', 'Review', [openGate('approval', openedAt)])

const limitedUntil = (ms: number): SessionItem => {
  const data = { reset_at: at(ms), reason: 'x', infra_failures: 1 }
  return sessionAt('running', 'RateLimit', [{ type: 'rate_limited', data }])
}

const askedUntil = (ms: number): SessionItem => {
  const data = { request_id: newId('req'), prompt: 'x', deadline_at: at(ms) }
  return sessionAt('running', 'Code', [{ type: 'user_input_requested', data }])
}

describe('the sweep looks', () => {
  it('though a worker keeps its lease alive', () => {
    const base = carriedOut(sessionAt('running', 'Code'), 0)
    const compute = { id: 'wrk_1', status: 'starting' as const, started_at: at(0), stopped_at: null }
    let item = changeItem(base, { ...nothing, runtime: { compute } }, at(0))
    item = changeItem(item, takeLease(item, 'wrk_1', 'claim', epochMs) ?? nothing, at(0))
    const before = dueAt(item)
    for (let beat = 1; beat <= 100; beat++) {
      const lease = { worker_id: 'wrk_1', epoch: item.runtime.lease.epoch }
      item = changeItem(item, renewLease(item, lease, epochMs + beat * 5000), at(beat * 5000))
    }
    expect(dueAt(item)).toBe(before)
    expect(due(item)).toBeLessThanOrEqual(60_000)
  })

  it('again a while after a step has arrived', () => {
    const item = sessionAt('running', 'Validate')
    const seen = changeItem(item, arrived(item, nothing), at(hour))
    expect(due(seen)).toBeGreaterThan(hour)
  })

  it('soon at what is half done', () => {
    expect(due(sessionAt('running', 'Code'))).toBeLessThanOrEqual(60_000)
    expect(due(carriedOut(sessionAt('needs_approval', 'Review'), 0, { start_pending: true }))).toBe(30_000)
  })

  it.each<[string, SessionItem, number]>([
    ['a gate', sessionAt('needs_approval', 'Review', [openGate('approval', epochMs)]), hour],
    ['a gate near its end', atGate(epochMs + 60_000 - limits.gateMs), 60_000],
    ['a rate limit', limitedUntil(50_000), 50_000],
    ['a long rate limit', limitedUntil(10 * hour), hour],
    ['a question near its end', askedUntil(20_000), 20_000],
    ['work', sessionAt('running', 'Code'), 60_000],
  ])('at %s in time', (_, item, ms) => {
    expect(due(carriedOut(item, 0))).toBe(ms)
  })

  it('at no session at rest', () => {
    expect(dueAt(carriedOut(sessionAt('running', 'Rest'), 0, { resting: true }))).toBeNull()
  })

  it('soon at a settled one that is not sealed, and then when its segments may go', () => {
    const kept = { checkpoint: aCheckpoint(), reason: 'abandoned' }
    const facts: RecordFact[] = [{ type: 'workspace_retained', data: kept }]
    const item = sessionAt('abandoned', 'Settle', facts)
    expect(due(carriedOut(item, 0, { settled: true }))).toBe(30_000)
    const sealed = { ...aSeal(), sealed_at: at(hour), cleared: false }
    expect(due(carriedOut(item, hour, { settled: true, sealed }))).toBe(3 * hour)
    expect(dueAt(carriedOut(item, hour, { resting: true }))).toBeNull()
  })

  it('at a settled one when it may be removed, and never at one with retained work', () => {
    const over = { settled: true, sealed: aSeal() }
    const settled = carriedOut(sessionAt('merged', 'Settle'), hour, over)
    expect(due(settled)).toBe(limits.retention.days * 24 * hour + 1000)
    const kept = { checkpoint: aCheckpoint(), reason: 'abandoned' }
    const facts: RecordFact[] = [{ type: 'workspace_retained', data: kept }]
    expect(dueAt(carriedOut(sessionAt('abandoned', 'Settle', facts), hour, over))).toBeNull()
  })
})
