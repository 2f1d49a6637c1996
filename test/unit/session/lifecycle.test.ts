import { describe, expect, it } from 'vitest'
import { GatehouseError } from '../../../lib/errors.ts'
import { advance } from '../../../lib/session/advance.ts'
import { changeItem, type SessionItem } from '../../../lib/session/item.ts'
import { type By, lifecycle, move, successors, type Transition } from '../../../lib/session/lifecycle.ts'
import { isTerminal, type State, type Step, stateSchema, stepSchema } from '../../../lib/session/states.ts'
import { at, sessionAt, system } from '../../support/sessions.ts'

const states = stateSchema.options
const steps = stepSchema.options
const everyone: By[] = ['operator', 'approver', 'worker', 'system']
const rows: readonly Transition[] = lifecycle

/** Said a second time and by other means than `move`: what the table's words mean. */
const expected = (row: Transition, by: By, state: State, step: Step) => {
  if (row.at !== 'any' && row.at !== step) return null
  if (!row.from.includes(state) || !row.by.includes(by)) return null
  return { to: row.to === 'same' ? state : row.to, next: row.next === 'same' ? step : row.next }
}

const combinations = lifecycle.flatMap((row) =>
  states.flatMap((state) => steps.flatMap((step) => everyone.map((by) => ({ row, state, step, by })))),
)

const parkedAt = (state: State, step: Step): SessionItem => {
  const item = sessionAt(state, step)
  return { ...item, runtime: { ...item.runtime, task: { step, token: 'token' } } }
}

describe('the lifecycle table', () => {
  it('allows what its rows say and nothing else, for every state, step, trigger and caller', () => {
    for (const { row, state, step, by } of combinations) {
      expect(move(row.trigger, by, { state, step })).toEqual(expected(row, by, state, step))
    }
    expect(combinations).toHaveLength(lifecycle.length * 9 * 14 * 4)
  })

  it('is followed by every real change of an item, and a refusal changes nothing', () => {
    const items = new Map(
      states.flatMap((state) => steps.map((step) => [`${state} ${step}`, parkedAt(state, step)] as const)),
    )
    for (const { row, state, step, by } of combinations) {
      const item = items.get(`${state} ${step}`)
      if (!item) throw new Error('no item')
      const before = JSON.stringify(item)
      const to = expected(row, by, state, step)
      const attempt = () => advance(item, { trigger: row.trigger, by, actor: system, note: 'n' })
      if (to) {
        const after = changeItem(item, attempt(), at(2000))
        expect(after.document).toMatchObject({ state: to.to, step: to.next })
        expect(after.version).toBe(item.version + 1)
        expect(after.runtime.answers).toEqual([
          {
            ...{ ok: true, token: 'token', sequence: after.journal_head.sequence },
            output: { next: to.next, note: 'n' },
          },
        ])
        expect(after.runtime).toMatchObject({ task: null, command: null })
      } else {
        const code = isTerminal(state) ? 'already_decided' : 'illegal_transition'
        expect(attempt).toThrow(expect.objectContaining({ code, name: GatehouseError.name }))
      }
      expect(JSON.stringify(item)).toBe(before)
    }
  })

  it('lets no terminal state go, whatever comes and whoever sends it', () => {
    for (const state of states.filter(isTerminal)) {
      for (const { row, step, by } of combinations) {
        const to = move(row.trigger, by, { state, step })?.to
        expect(to === undefined || to === state).toBe(true)
      }
    }
  })

  it('lets every live state be cancelled at every step', () => {
    for (const state of states.filter((one) => !isTerminal(one))) {
      for (const step of steps) {
        expect(move('cancelled', 'operator', { state, step })).toEqual({ to: 'abandoned', next: 'Settle' })
      }
    }
  })

  it('gives each trigger one row', () => {
    expect(new Set(rows.map(({ trigger }) => trigger)).size).toBe(rows.length)
  })

  it('names as successors of a step exactly the steps that some legal move leads to', () => {
    for (const step of steps) {
      const reached = new Set(
        combinations
          .filter((one) => one.step === step)
          .map(({ row, by, state }) => expected(row, by, state, step)?.next)
          .filter((next) => next !== undefined && next !== step),
      )
      expect(new Set(successors(step))).toEqual(reached)
    }
  })

  it('reaches every step and every state from the start', () => {
    const seen = new Set(['created Admit'])
    const open: { state: State; step: Step }[] = [{ state: 'created', step: 'Admit' }]
    for (const here of open) {
      for (const row of rows) {
        for (const by of row.by) {
          const to = expected(row, by, here.state, here.step)
          if (!to || seen.has(`${to.to} ${to.next}`)) continue
          seen.add(`${to.to} ${to.next}`)
          open.push({ state: to.to, step: to.next })
        }
      }
    }
    expect(new Set(open.map(({ state }) => state))).toEqual(new Set(states))
    expect(new Set(open.map(({ step }) => step))).toEqual(new Set(steps))
  })
})
