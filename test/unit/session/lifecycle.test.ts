import { describe, expect, it } from 'vitest'
import { GatehouseError } from '../../../lib/errors.ts'
import { advance } from '../../../lib/session/advance.ts'
import { changeItem, type SessionItem } from '../../../lib/session/item.ts'
import {
  type By,
  isTransition,
  lifecycle,
  move,
  successors,
  type Transition,
} from '../../../lib/session/lifecycle.ts'
import {
  isTerminal,
  type Stage,
  type State,
  type Step,
  stageSchema,
  stateSchema,
  steps as stepFacts,
  stepSchema,
} from '../../../lib/session/states.ts'
import { at, sessionAt, system } from '../../support/sessions.ts'

const states = stateSchema.options
const steps = stepSchema.options
const everyone: By[] = ['operator', 'approver', 'worker', 'system']
const rows: readonly Transition[] = lifecycle
/** The step that these tests' sessions at rest were held back from. */
const held: Step = 'Validate'

/** Said a second time and by other means than `move`: what the table's words mean. */
const expected = (row: Transition, by: By, state: State, step: Step, resume_at: Step | null) => {
  if (row.at !== 'any' && row.at !== step) return null
  if (!row.from.includes(state) || !row.by.includes(by)) return null
  const nexts = { same: step, held: resume_at }
  const next = row.next === 'same' || row.next === 'held' ? nexts[row.next] : row.next
  return next && { to: row.to === 'same' ? state : row.to, next }
}

const combinations = lifecycle.flatMap((row) =>
  states.flatMap((state) =>
    steps.flatMap((step) =>
      everyone.flatMap((by) => [null, held].map((resume_at) => ({ row, state, step, by, resume_at }))),
    ),
  ),
)

const parkedAt = (state: State, step: Step): SessionItem => {
  const item = sessionAt(state, step, [
    { type: 'run_stopped', data: { stage: 'code', resume_at: held, reason: 'test' } },
  ])
  return { ...item, runtime: { ...item.runtime, task: { step, token: 'token' } } }
}

describe('the lifecycle table', () => {
  it('allows what its rows say and nothing else, for every state, step, trigger and caller', () => {
    for (const { row, state, step, by, resume_at } of combinations)
      expect(move(row.trigger, by, { state, step, resume_at })).toEqual(
        expected(row, by, state, step, resume_at),
      )
    expect(combinations).toHaveLength(lifecycle.length * 9 * 18 * 4 * 2)
  })

  it('is followed by every real change of an item, and a refusal changes nothing', () => {
    const items = new Map(
      states.flatMap((state) => steps.map((step) => [`${state} ${step}`, parkedAt(state, step)] as const)),
    )
    const texts = new Map([...items].map(([name, item]) => [name, JSON.stringify(item)]))
    for (const { row, state, step, by, resume_at } of combinations) {
      if (resume_at === null) continue
      const item = items.get(`${state} ${step}`)
      if (!item) throw new Error('no item')
      const to = expected(row, by, state, step, resume_at)
      const attempt = () => advance(item, { trigger: row.trigger, by, actor: system, note: 'n' })
      if (to) {
        const after = changeItem(item, attempt(), at(2000))
        expect(after.document).toMatchObject({ state: to.to, step: to.next })
        expect(after.version).toBe(item.version + 1)
        expect(after.runtime.answers).toEqual([
          {
            ...{ ok: true, token: 'token', sequence: after.journal_head.sequence },
            output: { next: to.next, note: 'n', wait: 1, at: after.journal_head.sequence, away: 0 },
          },
        ])
        expect(after.runtime).toMatchObject({ task: null, command: null })
      } else {
        const code = isTerminal(state) ? 'already_decided' : 'illegal_transition'
        expect(attempt).toThrow(expect.objectContaining({ code, name: GatehouseError.name }))
      }
      expect(JSON.stringify(item)).toBe(texts.get(`${state} ${step}`))
    }
  })

  it('lets no terminal state go, whatever comes and whoever sends it', () => {
    for (const state of states.filter(isTerminal)) {
      for (const { row, step, by, resume_at } of combinations) {
        const to = move(row.trigger, by, { state, step, resume_at })?.to
        expect(to === undefined || to === state).toBe(true)
      }
    }
  })

  it('lets every live state be cancelled at every step, and fail there', () => {
    for (const state of states.filter((one) => !isTerminal(one))) {
      for (const step of steps) {
        const here = { state, step, resume_at: null }
        expect(move('cancelled', 'operator', here)).toEqual({ to: 'abandoned', next: 'Settle' })
        expect(move('failed', 'system', here)).toEqual({ to: 'failed', next: 'Settle' })
      }
    }
  })

  it('gives each trigger one row', () => {
    expect(new Set(rows.map(({ trigger }) => trigger)).size).toBe(rows.length)
  })

  it('lets only people of the least role that may decide it pull a person’s trigger', () => {
    const decided = rows.filter(({ by }) => by.includes('operator') || by.includes('approver'))
    const operators = decided.filter(({ by }) => by.includes('operator')).map(({ trigger }) => trigger)
    expect(operators).toEqual(['contract_revised', 'resumed', 'cancelled'])
    for (const { trigger, at } of decided)
      if (trigger !== 'cancelled' && trigger !== 'resumed' && at !== 'any')
        expect(stepFacts[at].kind).toBe('gate')
  })

  it('gives every step but Settle a way on of its own', () => {
    const alone = steps.filter((step) => !rows.some(({ at, next }) => at === step && next !== 'same'))
    expect(alone).toEqual(['Settle'])
  })
})

/** The steps at which a session of some stage can be held back, found from every single move. */
const heldSteps = rows.flatMap(({ trigger, at, next }): Step[] =>
  at !== 'any' && next !== 'same' && next !== 'held' && isTransition(trigger, stepFacts[at].stage, next)
    ? [next]
    : [],
)

describe('the steps that follow', () => {
  it('are those of the legal moves, and from rest those at which a session can be held back', () => {
    for (const step of steps) {
      const reached = new Set(
        combinations
          .filter((one) => one.step === step && one.resume_at === null)
          // Only what has ended settles.
          .filter(({ state }) => step !== 'Settle' || isTerminal(state))
          .map(({ row, by, state }) => expected(row, by, state, step, null)?.next)
          .filter((next) => next !== undefined && next !== step),
      )
      if (step === 'Rest') for (const next of [...heldSteps, 'Verify' as const]) reached.add(next)
      expect(new Set(successors(step)), step).toEqual(reached)
    }
    expect(new Set(heldSteps)).toEqual(new Set(['Plan', 'Code', 'Validate', 'Review']))
  })

  it('reach every step and every state from the start', () => {
    const seen = new Set(['created Admit'])
    const open: { state: State; step: Step }[] = [{ state: 'created', step: 'Admit' }]
    for (const here of open) {
      for (const row of rows) {
        for (const by of row.by) {
          const to = expected(row, by, here.state, here.step, null)
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

describe('a transition in the sense of the counters', () => {
  const forward = (from: Stage, next: Step) =>
    next !== 'Rest' &&
    next !== 'Settle' &&
    stageSchema.options.indexOf(stepFacts[next].stage) > stageSchema.options.indexOf(from)

  it('is every move to a later stage but the look at what an interrupted engine left', () => {
    const looks = ['engine_interrupted', 'resumes_exhausted']
    for (const { trigger } of rows)
      for (const from of stageSchema.options)
        for (const next of steps)
          expect(isTransition(trigger, from, next)).toBe(forward(from, next) && !looks.includes(trigger))
  })
})
