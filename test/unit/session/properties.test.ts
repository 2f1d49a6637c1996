import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { contractHash } from '../../../lib/contract/hash.ts'
import { GatehouseError, isError } from '../../../lib/errors.ts'
import { canonical, fromLines } from '../../../lib/journal/entry.ts'
import { foldJournal } from '../../../lib/journal/fold.ts'
import { verifyJournal } from '../../../lib/journal/verify.ts'
import { limits } from '../../../lib/limits.ts'
import { approve, confirm, reject, requestChanges, revise } from '../../../lib/session/decisions.ts'
import { needsYou } from '../../../lib/session/gates.ts'
import type { SessionItem } from '../../../lib/session/item.ts'
import { isTerminal } from '../../../lib/session/states.ts'
import { aContract, ada, epochMs } from '../../support/sessions.ts'
import { begin, type Move, make, moves, stored } from './walk.ts'

const kinds = Object.keys(moves).filter((kind): kind is Move['kind'] => kind in moves)
const move = fc.record({
  kind: fc.oneof(
    { weight: 4, arbitrary: fc.constant<Move['kind']>('onward') },
    { weight: 1, arbitrary: fc.constantFrom(...kinds) },
  ),
  dice: fc.nat({ max: 10_000 }),
  later: fc.oneof(
    { weight: 8, arbitrary: fc.nat({ max: 2_000 }) },
    { weight: 1, arbitrary: fc.nat({ max: 100_000 }) },
  ),
})

/** A straight way into the middle of a session's life, to begin the walk there. */
const straight = fc.record({ length: fc.nat({ max: 45 }), dice: fc.constantFrom(1, 31) })

const accepts = (decision: () => unknown): boolean => {
  try {
    decision()
    return true
  } catch (error) {
    if (isError(error, 'illegal_transition', 'already_decided', 'review_moved', 'contract_moved'))
      return false
    throw error
  }
}

const requireAgreement = (item: SessionItem): void => {
  const kind = needsYou(item.document)?.kind ?? null
  const hash = item.document.contract_hash ?? 'none'
  const review_id = item.document.review_identity?.review_id ?? 'none'
  const contract = kind === 'contract'
  const approval = kind === 'approval'
  expect(accepts(() => confirm(item, { contract_hash: hash, contract: null }, ada))).toBe(contract)
  expect(accepts(() => revise(item, aContract({ setup: ['make'] }), ada))).toBe(contract)
  expect(accepts(() => approve(item, { review_id, comment: null }, ada))).toBe(approval)
  expect(accepts(() => reject(item, { review_id, reason: 'no' }, ada))).toBe(approval)
  const { iterations, max_iterations } = item.document
  const changes = () => requestChanges(item, { review_id, text: 'more' }, ada, epochMs)
  expect(accepts(changes)).toBe(approval && iterations < max_iterations)
}

const requireCounters = ({ document }: SessionItem): void => {
  expect(document.iterations).toBeGreaterThanOrEqual(0)
  expect(document.iterations).toBeLessThanOrEqual(document.max_iterations)
  expect(document.round_started_at).toBeLessThanOrEqual(document.iterations)
  expect(document.infra_failures).toBeGreaterThanOrEqual(0)
  expect(document.infra_failures).toBeLessThanOrEqual(limits.infraFailures)
  expect(document.consecutive_failures).toBeGreaterThanOrEqual(0)
  expect(document.consecutive_failures).toBeLessThanOrEqual(2 * document.max_iterations)
}

const requireGate = ({ document }: SessionItem): void => {
  if (!document.gate) return
  expect(isTerminal(document.state)).toBe(false)
  expect(document.step).toBe(document.gate.kind === 'contract' ? 'Confirm' : 'Review')
  expect(document.state).toBe(document.gate.kind === 'contract' ? 'contract_proposed' : 'needs_approval')
}

describe('any sequence of moves, legal or not', () => {
  const reached = new Set<string>()

  it('keeps the invariants of a session after every one of them', () => {
    fc.assert(
      fc.property(
        fc.nat({ max: 100 }),
        straight,
        fc.array(move, { minLength: 5, maxLength: 35 }),
        (dice, way, walk) => {
          const lines = new Map<number, string>()
          const answered = { ok: new Set<string>(), failed: new Set<string>() }
          let item = stored(begin(dice))
          let now = 0
          const keep = () => {
            for (const { sequence, line } of item.outbox) {
              expect(lines.get(sequence) ?? line).toBe(line)
              lines.set(sequence, line)
            }
          }
          keep()
          for (let done = 0; done < way.length; done++) {
            item = make(item, { kind: 'onward', dice: way.dice }, now)
            keep()
          }
          for (const one of walk) {
            now += one.later
            const before = item
            const text = JSON.stringify(before)
            try {
              item = make(before, one, now)
            } catch (error) {
              if (!(error instanceof GatehouseError)) throw error
              expect(JSON.stringify(before)).toBe(text)
              continue
            }
            expect(JSON.stringify(before)).toBe(text)
            keep()
            if (item === before) continue
            expect(item.revision).toBe(before.revision + 1)
            const fresh = item.outbox.filter(({ sequence }) => sequence > before.journal_head.sequence)
            const records = fromLines(fresh.map(({ line }) => line).join('\n')).filter(
              ({ kind }) => kind === 'record',
            )
            expect(item.version).toBe(before.version + (records.length > 0 ? 1 : 0))
            if (isTerminal(before.document.state)) expect(item.document.state).toBe(before.document.state)
            for (const { ok, token } of item.runtime.answers) {
              if (before.runtime.answers.some((old) => old.token === token && old.ok === ok)) continue
              const seen = ok ? answered.ok : answered.failed
              expect(seen.has(token), `token ${token} is answered twice`).toBe(false)
              seen.add(token)
            }
            requireGate(item)
            requireCounters(item)
            reached.add(item.document.state)
            reached.add(item.document.step)
          }
          const entries = fromLines([...lines.values()].join('\n'))
          expect(canonical(foldJournal(entries))).toBe(canonical(item.document))
          expect(verifyJournal(entries, { head: item.journal_head, document: item.document })).toMatchObject({
            ok: true,
          })
          const gates = entries.filter(({ type }) => type === 'gate_opened').length
          const closed = entries.filter(({ type }) => type === 'gate_resolved').length
          expect(gates - closed).toBeLessThanOrEqual(1)
          requireAgreement(item)
          const { contract, contract_hash: hash } = item.document
          expect(hash).toBe(contract && contractHash(contract))
        },
      ),
      { numRuns: 500 },
    )
  }, 60_000)

  it('got to every state and every step on the way', () => {
    expect([...reached].sort()).toEqual(
      expect.arrayContaining(['merged', 'reported', 'failed', 'abandoned', 'Deliver', 'Review', 'Settle']),
    )
  })
})
