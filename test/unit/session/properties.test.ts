import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { contractHash } from '../../../lib/contract/hash.ts'
import { GatehouseError } from '../../../lib/errors.ts'
import { newId } from '../../../lib/ids.ts'
import { canonical, fromLines } from '../../../lib/journal/entry.ts'
import { foldJournal } from '../../../lib/journal/fold.ts'
import { verifyJournal } from '../../../lib/journal/verify.ts'
import { continuation } from '../../../lib/session/continuation.ts'
import { creation } from '../../../lib/session/creation.ts'
import { createItem, type SessionItem } from '../../../lib/session/item.ts'
import { isTerminal, stateSchema, stepSchema } from '../../../lib/session/states.ts'
import { ada, at } from '../../support/sessions.ts'
import { requireAgreement } from './agreement.ts'
import { requireInvariants, requireProgress } from './invariants.ts'
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

/** A straight way into the middle of a session's life, to begin the walk there: all green, idle, all red, or held up. */
const straight = fc.record({ length: fc.nat({ max: 60 }), dice: fc.constantFrom(1, 31, 111, 2, 122) })

/** Whether a move was made; one that was refused by its name has changed nothing. */
const tried = (item: SessionItem, one: Move, now: number): SessionItem => {
  const text = JSON.stringify(item)
  try {
    return make(item, one, now)
  } catch (error) {
    if (!(error instanceof GatehouseError)) throw error
    return item
  } finally {
    expect(JSON.stringify(item)).toBe(text)
  }
}

/** A session can be continued exactly when it has ended and left something; what begins then is a session. */
const requireContinuation = ({ document }: SessionItem): void => {
  const left = document.state === 'merged' || (document.retained_work && document.start_commit !== null)
  const ended = isTerminal(document.state) && document.execution_stopped
  const proceed = () => {
    const { start, legacy } = continuation(document, { intent: 'Go on' })
    const id = newId('ses')
    const change = creation({ id, team: 'team', repo: start.repo }, start, ada, legacy)
    return stored(createItem({ team: 'team', id }, change, at(0)))
  }
  if (left && ended) expect(proceed().document).toMatchObject({ resumed_from: document.id, state: 'created' })
  else expect(proceed).toThrow(GatehouseError)
}

/** A worker, a machine and people that always go on, in one way or another, until the session has ended. */
const requireEnd = (item: SessionItem, now: number, seed: number): void => {
  let ended: SessionItem = { ...item, outbox: [] }
  let dice = seed
  for (let moved = 0; moved < 1000 && !ended.document.execution_stopped; moved++) {
    dice = (dice * 1_103_515_245 + 12_345) % 2_147_483_648
    ended = { ...tried(ended, { kind: 'onward', dice: dice >> 8 }, now + moved * 100), outbox: [] }
    requireInvariants(ended)
  }
  expect(ended.document).toMatchObject({ execution_stopped: true, step: 'Settle' })
  requireContinuation(ended)
}

describe('any sequence of moves, legal or not', () => {
  const reached = new Set<string>()

  it('keeps the invariants of a session after every one of them', () => {
    fc.assert(
      fc.property(
        fc.nat({ max: 1000 }),
        straight,
        fc.array(move, { minLength: 5, maxLength: 35 }),
        (dice, way, walk) => {
          const lines = new Map<number, string>()
          const answered = { ok: new Set<string>(), failed: new Set<string>() }
          let item = stored(begin(dice))
          let now = 0
          const keep = () => {
            requireInvariants(item)
            reached.add(item.document.state).add(item.document.step)
            for (const { sequence, line } of item.outbox) {
              expect(lines.get(sequence) ?? line).toBe(line)
              lines.set(sequence, line)
            }
          }
          keep()
          for (let done = 0; done < way.length; done++) {
            item = tried(item, { kind: 'onward', dice: way.dice }, now)
            keep()
          }
          for (const one of walk) {
            now += one.later
            const before = item
            item = tried(before, one, now)
            if (item === before) continue
            item = stored(item)
            keep()
            requireProgress(before, item)
            requireAgreement(item)
            expect(item.revision).toBe(before.revision + 1)
            const fresh = item.outbox.filter(({ sequence }) => sequence > before.journal_head.sequence)
            const records = fromLines(fresh.map(({ line }) => line).join('\n')).filter(
              ({ kind }) => kind === 'record',
            )
            expect(item.version).toBe(before.version + (records.length > 0 ? 1 : 0))
            for (const { ok, token } of item.runtime.answers) {
              if (before.runtime.answers.some((old) => old.token === token && old.ok === ok)) continue
              const seen = ok ? answered.ok : answered.failed
              expect(seen.has(token), `token ${token} is answered twice`).toBe(false)
              seen.add(token)
            }
          }
          const entries = fromLines([...lines.values()].join('\n'))
          expect(canonical(foldJournal(entries))).toBe(canonical(item.document))
          expect(verifyJournal(entries, { head: item.journal_head, document: item.document })).toMatchObject({
            ok: true,
          })
          const gates = entries.filter(({ type }) => type === 'gate_opened').length
          const closed = entries.filter(({ type }) => type === 'gate_resolved').length
          expect(gates - closed).toBe(item.document.gate ? 1 : 0)
          const { contract, contract_hash: hash } = item.document
          expect(hash).toBe(contract && contractHash(contract))
          requireContinuation(item)
          requireEnd(item, now, dice)
        },
      ),
      { numRuns: 400 },
    )
  }, 120_000)

  it('got to every state and every step on the way', () => {
    expect([...reached].sort()).toEqual([...stateSchema.options, ...stepSchema.options].sort())
  })
})
