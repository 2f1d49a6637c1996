import { expect, test } from 'vitest'
import { arrived, changeItem, dueAt } from '../../../lib/session/item.ts'
import { renewLease, takeLease } from '../../../lib/session/worker.ts'
import { sessionAt } from '../../support/sessions.ts'

const start = Date.parse('2026-01-01T00:00:00.000Z')
const at = (ms: number) => new Date(start + ms).toISOString()
const nothing = { actor: { kind: 'system', id: 'test' } as const, facts: [] }

test('a worker that keeps its lease alive does not keep the sweep away', () => {
  const base = changeItem(sessionAt('running', 'Code'), arrived(sessionAt('running', 'Code'), nothing), at(0))
  const compute = { id: 'wrk_1', status: 'starting' as const, started_at: at(0), stopped_at: null }
  let item = changeItem(base, { ...nothing, runtime: { compute } }, at(0))
  item = changeItem(item, takeLease(item, 'wrk_1', start), at(0))
  const due = dueAt(item)
  for (let beat = 1; beat <= 100; beat++) {
    const lease = { worker_id: 'wrk_1', epoch: item.runtime.lease.epoch }
    item = changeItem(item, renewLease(item, lease, start + beat * 5000), at(beat * 5000))
  }
  expect(dueAt(item)).toBe(due)
  expect(Date.parse(due ?? '')).toBeLessThanOrEqual(start + 60_000)
})

test('a session whose step has arrived is looked at again a while after that, and a settled one never', () => {
  const item = sessionAt('running', 'Validate')
  const seen = changeItem(item, arrived(item, nothing), at(3_600_000))
  expect(Date.parse(dueAt(seen) ?? '')).toBeGreaterThan(start + 3_600_000)
  const settled = changeItem(
    seen,
    {
      ...nothing,
      drained: seen.journal_head.sequence,
      runtime: { settled: true, start_pending: false, answers: [] },
    },
    at(3_600_001),
  )
  expect(dueAt(settled)).toBeNull()
})
