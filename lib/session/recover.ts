import type { Actor } from '../journal/entry.ts'
import type { Fact } from '../journal/facts.ts'
import { limits } from '../limits.ts'
import { firstOf } from '../text/shorten.ts'
import { visible } from '../text/visible.ts'
import { advance } from './advance.ts'
import type { Document } from './document.ts'
import { fail } from './fail.ts'
import { openGate } from './gates.ts'
import { liftLimit } from './handlers.ts'
import type { Change, SessionItem } from './item.ts'
import type { Trigger } from './lifecycle.ts'
import { isGateStep, type Step } from './states.ts'

/**
 * A fault as the machine reports it: `at` is that of the step which failed, the same for each repeat of the call; null from
 * an execution that began before steps had one.
 */
export type Fault = { error: string; cause: string; at: number | null }

/** Whether a fault is one that was dealt with, or is told of so late that a later one was. */
export const wasDealtWith = ({ runtime: { last_recovery: last } }: SessionItem, { at }: Fault): boolean =>
  last !== null && at !== null && at <= last

const actor = (step: Step): Actor => ({ kind: 'system', id: step })

/** The machine has left the step whose token the session may still hold, and the worker that the fault was about. */
const left = (item: SessionItem, change: Change, fault: Fault): Change => {
  const { compute, answers } = item.runtime
  return {
    ...change,
    runtime: {
      ...change.runtime,
      answers,
      compute: compute && compute.status !== 'stopped' ? { ...compute, status: 'stopping' } : compute,
      last_recovery: fault.at,
    },
  }
}

/** Whether what the session waits for is over; a step before it that timed out after its last write says nothing of that. */
const isOver = ({ gate, rate_limit: limit }: Document, { error }: Fault, now: number): boolean => {
  const end = gate?.deadline_at ?? limit?.reset_at
  return error === 'States.Timeout' && end !== undefined && now >= Date.parse(end)
}

/** What a fault of the contract's setup is called. */
export const setupFailed = 'SetupFailed'

/** The step's way to a person, where its contract's setup failed in every try; null for any other fault. */
const blocked = ({ document: { step } }: SessionItem, { error }: Fault): Trigger | null => {
  if (error !== setupFailed) return null
  if (step === 'Validate') return 'validate_setup_failed'
  return step === 'Verify' ? 'verify_setup_failed' : null
}

/** How a step is run again: an engine's run from its checkpoint, up to a ceiling at which a person is asked. */
export const again = (item: SessionItem, facts: readonly Fact[], detail: string, now: number): Change => {
  const { step, checkpoint_resumes: resumes } = item.document
  const base = { by: 'system' as const, actor: actor(step), note: detail }
  if (step !== 'Code') return advance(item, { ...base, trigger: 'recovered', facts })
  if (resumes < limits.checkpointResumes) {
    const resumed: Fact = { type: 'checkpoint_resumed', data: { step, count: resumes + 1 } }
    return advance(item, { ...base, trigger: 'recovered', facts: [...facts, resumed] })
  }
  const context = `The engine’s run was lost and resumed ${resumes} times. ${detail}`
  const gate = openGate('validate', now, { context, cause: 'interrupted', unexpected: true })
  return advance(item, { ...base, trigger: 'resumes_exhausted', facts, after: [gate] })
}

/**
 * A step failed outside the work itself: its worker was lost, it timed out, or its handler threw. The step is run
 * again from the last checkpoint until the ceilings of spec/workflow-state.md C.3. A gate whose time is over fails the
 * session by its own kind; a rate limit whose time is over has lifted. Null for a repeat of a fault that was dealt with.
 */
export const recover = (item: SessionItem, fault: Fault, now: number): Change | null => {
  const { document } = item
  const { step } = document
  if (wasDealtWith(item, fault)) return null
  const over = isOver(document, fault, now)
  if (step === 'RateLimit' && over) return left(item, liftLimit(item, now), fault)
  if (isGateStep(step) && over) {
    const error = 'nobody answered before the gate’s deadline'
    return left(item, fail(item, 'system', actor(step), { failure_kind: 'stalled', error }), fault)
  }
  const count = document.infra_failures + 1
  const detail = firstOf(visible(`${fault.error}: ${fault.cause}`), 500)
  const facts: Fact[] = [{ type: 'infrastructure_fault', data: { step, cause: fault.error, detail, count } }]
  if (count >= limits.infraFailures) {
    const trigger = blocked(item, fault)
    if (trigger) {
      const why = {
        context: fault.cause,
        problem: 'the setup fails',
        cause: 'setup',
        unexpected: true,
      } as const
      const gate = openGate('validate', now, why)
      const how = { trigger, by: 'system' as const, actor: actor(step), note: detail, facts, after: [gate] }
      return left(item, advance(item, how), fault)
    }
    const error = `${count} faults, the last at ${step}: ${detail}`
    return left(
      item,
      fail(item, 'system', actor(step), { failure_kind: 'infrastructure', error }, facts),
      fault,
    )
  }
  return left(item, again(item, facts, detail, now), fault)
}
