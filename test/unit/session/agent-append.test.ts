import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { newId } from '../../../lib/ids.ts'
import { chain, type Statement, toLine } from '../../../lib/journal/entry.ts'
import { limits } from '../../../lib/limits.ts'
import { besideData, setAside } from '../../../lib/session/agent-append.ts'

describe('what is kept beside the journal', () => {
  const { bytes } = limits.journalBatch
  const sizes = fc.array(fc.nat({ max: 2 * limits.journalEntry }), { minLength: 1, maxLength: 260 })

  it('leaves entries that fit, one by one and together', () => {
    fc.assert(
      fc.property(sizes, fc.nat({ max: 2 * bytes }), (given, beside) => {
        const aside = setAside(given, beside)
        const left = given.filter((_, at) => !aside.has(at))
        const sum = left.reduce((total, size) => total + size, 0)
        expect(Math.max(0, ...left)).toBeLessThanOrEqual(limits.journalEntry)
        expect(sum).toBeLessThanOrEqual(bytes)
        expect(sum + beside).toBeLessThanOrEqual(2 * bytes)
      }),
    )
  })

  it('is all that is: whoever left it out finds nothing more to leave out', () => {
    fc.assert(
      fc.property(sizes, fc.nat({ max: 2 * bytes }), (given, beside) => {
        const aside = setAside(given, beside)
        const again = setAside(
          given.map((size, at) => (aside.has(at) ? 0 : size)),
          beside,
        )
        expect(again.size).toBe(0)
      }),
    )
  })

  it('is nothing of what has room', () => {
    expect(setAside(Array(10).fill(bytes / 10), besideData(Array(10).fill({}))).size).toBe(0)
  })
})

it('no line holds more beside its data than a batch is counted with', () => {
  const metadata = { 'org.example': { note: 'é'.repeat(100) } }
  const context = {
    ...{ id: newId('evt'), time: new Date().toISOString(), branch: newId('brn') },
    ...{ causation_id: newId('cmd'), correlation_id: newId('run'), metadata },
    data_ref: { artifact: `data-${'0'.repeat(64)}.json`, bytes: limits.entryData, sha256: '0'.repeat(64) },
  }
  const data = { tool_call_id: newId('call'), reason: 'x' }
  const statement: Statement = { type: 'tool_execution_interrupted', data, context }
  const head = { sequence: Number.MAX_SAFE_INTEGER - 2, hash: `sha256:${'0'.repeat(64)}` }
  const stamp = {
    ...{ sessionId: newId('ses'), time: context.time },
    actor: { kind: 'worker', id: newId('wrk') } as const,
  }
  const [entry] = chain(head, [statement], stamp).entries
  const line = entry ? Buffer.byteLength(toLine(entry)) : 0
  expect(line).toBeGreaterThan(besideData([context]) / 2)
  expect(line).toBeLessThanOrEqual(besideData([context]))
})
