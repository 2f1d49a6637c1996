import { GatehouseError } from '../errors.ts'
import type { Actor } from '../journal/entry.ts'
import type { Fact } from '../journal/facts.ts'
import { advance } from './advance.ts'
import { startClock } from './clock.ts'
import type { Gate } from './document.ts'
import { resolveGate } from './gates.ts'
import type { Change, SessionItem } from './item.ts'
import type { Trigger } from './lifecycle.ts'
import { mayIterate, redResults } from './policy.ts'

export type GateAction = 'advance' | 'loop_back' | 'abort'
type Answer = { gate_id: string; action: GateAction; note: string | null }

/**
 * What each answer does (spec/workflow-state.md C.5, C.7, C.8). At preflight, advance goes on without looking again and
 * loop_back looks again. At validate, advance lets what is red now be red at review; after a run that could not go on
 * there is nothing to let through, so both launch it again; after a setup that failed the work is evaluated again.
 */
const triggerOf = (gate: Gate, action: GateAction): Trigger => {
  if (gate.kind === 'preflight') {
    const triggers = {
      advance: 'preflight_waived',
      loop_back: 'preflight_repeated',
      abort: 'preflight_aborted',
    } as const
    return triggers[action]
  }
  if (action === 'abort') return 'validate_aborted'
  if (gate.cause === 'setup') {
    if (action === 'loop_back') return 'evaluation_repeated'
    throw new GatehouseError(
      'illegal_transition',
      'advance is not possible: the setup failed, so no check judged the work; loop_back tries the setup again, abort ends the session',
    )
  }
  return action === 'advance' && gate.cause === 'red' ? 'red_accepted' : 'work_repeated'
}

/** What goes with a trigger: the clock that a person sets going again, and what they let through. */
const factsOf = (
  { document }: SessionItem,
  trigger: Trigger,
  { note }: Answer,
  actor: Actor,
  now: number,
): Fact[] => {
  switch (trigger) {
    case 'preflight_aborted':
    case 'validate_aborted': {
      // A setup that failed is a fault around the work, which says nothing against the work.
      const kept = document.gate?.cause === 'setup' ? { keep: true } : {}
      return [{ type: 'session_cancelled', data: { reason: note, by: actor.id, ...kept } }]
    }
    case 'red_accepted': {
      const checks = redResults(document.last_check_results).map(({ name }) => name)
      return [{ type: 'red_accepted', data: { checks, by: actor.id } }, startClock(document, now)]
    }
    case 'work_repeated': {
      // A run that was lost is made again within its iteration.
      const used = document.iteration_open ? null : mayIterate({ ...document, deadline_at: null }, now)
      if (used) throw new GatehouseError('illegal_transition', `the work can’t be tried again: ${used}`)
      return [startClock(document, now)]
    }
    case 'evaluation_repeated':
      return [startClock(document, now)]
    default:
      return []
  }
}

/** The gate that an answer names. Throws `already_decided` for one that is not open any more, whatever has opened since. */
const namedGate = (item: SessionItem, gateId: string): Gate => {
  const { gate, state, step, preflight_retries: retries } = item.document
  if (gate?.id !== gateId) {
    // Before the first could have opened there was none to be late for.
    const none = step === 'Admit' || (step === 'Preflight' && retries === 0)
    const where = gate ? `waits at ${gate.id}` : `is ${state} at step ${step}`
    throw new GatehouseError(
      none ? 'illegal_transition' : 'already_decided',
      `gate ${gateId} is not open; the session ${where}`,
    )
  }
  if (gate.kind !== 'preflight' && gate.kind !== 'validate')
    throw new GatehouseError(
      'illegal_transition',
      `gate ${gate.id} is decided by its own call, not by this one`,
    )
  return gate
}

/** Decides the preflight or validate gate that is named. */
export const decideGate = (item: SessionItem, answer: Answer, actor: Actor, now: number): Change => {
  const gate = namedGate(item, answer.gate_id)
  const trigger = triggerOf(gate, answer.action)
  return advance(item, {
    trigger,
    by: 'approver',
    actor,
    note: `${gate.kind}: ${answer.action} by ${actor.id}`,
    facts: [
      ...resolveGate(gate, answer.action, actor, answer.note),
      ...factsOf(item, trigger, answer, actor, now),
    ],
  })
}
