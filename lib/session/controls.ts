import { GatehouseError } from '../errors.ts'
import type { Actor } from '../journal/entry.ts'
import type { Fact } from '../journal/facts.ts'
import { branchName } from '../workspace/delivery-check.ts'
import { advance } from './advance.ts'
import { startClock } from './clock.ts'
import type { Document } from './document.ts'
import { openGate, resolveGate, reviewContext } from './gates.ts'
import { guidance } from './guidance.ts'
import type { Change, Runtime, SessionItem } from './item.ts'
import { isLaterStage, isTerminal, type Stage, steps } from './states.ts'

/** A new execution for a session whose last one ended when it came to rest. */
const nextAttempt = ({ runtime }: SessionItem): Partial<Runtime> => ({
  attempt: runtime.attempt + 1,
  start_pending: true,
  execution_arn: null,
  resting: false,
})

/** What a cancel can't take back: a delivery may be through when its worker is ended, and nobody is left to say so. */
const undelivered = ({ id, step, review_identity: review }: Document): Fact[] => {
  if (step !== 'Deliver' || !review) return []
  const detail = `cancelled while it was being delivered: branch ${branchName(id)} may be in the repository, at ${review.commit}`
  return [{ type: 'delivery_failed', data: { problem: 'cancelled', detail } }]
}

/** Cancels in any state that has not ended; null when it has, for a second cancel is no error. */
export const cancel = (item: SessionItem, reason: string | null, actor: Actor): Change | null => {
  const { document } = item
  if (isTerminal(document.state)) return null
  const change = advance(item, {
    trigger: 'cancelled',
    by: 'operator',
    actor,
    note: `cancelled by ${actor.id}`,
    facts: [
      ...resolveGate(document.gate, 'cancel', actor, reason),
      ...undelivered(document),
      { type: 'session_cancelled', data: { reason, by: actor.id } },
    ],
  })
  return document.step === 'Rest'
    ? { ...change, runtime: { ...change.runtime, ...nextAttempt(item) } }
    : change
}

/** Sets a stopped session going again, to its end or to the end of another stage; its clock starts anew. */
export const resume = (item: SessionItem, until: Stage | null, actor: Actor, now: number): Change => {
  const { document } = item
  if (!document.stopped || document.resume_at === null) {
    throw new GatehouseError(
      isTerminal(document.state) ? 'already_decided' : 'illegal_transition',
      `session ${document.id} is not stopped: it is ${document.state} at step ${document.step}`,
    )
  }
  const { resume_at: next } = document
  if (until !== null && isLaterStage(steps[next].stage, until)) {
    const message = `${until} is over; the session goes on with ${steps[next].stage}`
    throw new GatehouseError('invalid_request', message, { errors: [{ path: 'until', message }] })
  }
  const change = advance(
    // What held it back must not hold it back again.
    { ...item, document: { ...document, until } },
    {
      trigger: 'resumed',
      by: 'operator',
      actor,
      note: `resumed by ${actor.id}`,
      facts: [
        { type: 'run_resumed', data: { until, by: actor.id } },
        ...(document.deadline_at === null ? [] : [startClock(document, now)]),
      ],
      after: next === 'Review' ? [openGate('approval', now, { context: reviewContext(document) })] : [],
    },
  )
  return { ...change, runtime: { ...change.runtime, ...nextAttempt(item) } }
}

/** Accepts guidance for a session that has not ended; the next engine that asks or starts is given it. */
export const steer = ({ document }: SessionItem, text: string, actor: Actor): Change => {
  if (isTerminal(document.state))
    throw new GatehouseError('already_decided', `session ${document.id} has ended`)
  return { actor, facts: [guidance(document, text, actor)] }
}

/** Answers the question that is named. Throws `not_found` for one that this session never asked last, `already_decided` for one that is over. */
export const answer = (
  { document }: SessionItem,
  request: { request_id: string; text: string },
  actor: Actor,
): Change => {
  const { question } = document
  if (question?.request_id !== request.request_id) {
    throw new GatehouseError('not_found', `session ${document.id} has no question ${request.request_id}`)
  }
  if (question.status !== 'pending' || isTerminal(document.state))
    throw new GatehouseError('already_decided', `question ${question.request_id} is ${question.status}`)
  return { actor, facts: [{ type: 'user_input_answered', data: { ...request, by: actor.id } }] }
}
