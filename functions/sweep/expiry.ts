import { fail } from '../../lib/session/fail.ts'
import { liftLimit } from '../../lib/session/handlers.ts'
import type { Change, SessionItem } from '../../lib/session/item.ts'
import { isTerminal } from '../../lib/session/states.ts'
import { expireQuestion } from '../../lib/session/worker.ts'
import { actor, patienceMs, repaired } from './round.ts'

const gateExpired = (item: SessionItem, now: number): Change | null => {
  const { gate } = item.document
  if (!gate || now < Date.parse(gate.deadline_at)) return null
  const error = 'nobody answered before the gate’s deadline'
  return fail(item, 'system', actor, { failure_kind: 'stalled', error }, [
    repaired('gate', `gate ${gate.id} expired at ${gate.deadline_at}`),
  ])
}

const questionExpired = (item: SessionItem, now: number): Change | null => {
  const change = expireQuestion(item, actor, now)
  const asked = item.document.question
  if (!change || !asked) return null
  const told = repaired('question', `question ${asked.request_id} expired at ${asked.deadline_at}`)
  return { ...change, facts: [...change.facts, told] }
}

/** What about a live session has expired (spec/coder-session.md 4.4, 8): its gate or its question; null when nothing has. */
export const expire = (item: SessionItem, now: number): Change | null =>
  isTerminal(item.document.state) ? null : (gateExpired(item, now) ?? questionExpired(item, now))

/** The end of a rate limit that the machine did not wake for by itself; null while it still may. */
export const overslept = (item: SessionItem, now: number): Change | null => {
  const { step, state, rate_limit: limit } = item.document
  if (step !== 'RateLimit' || !limit || isTerminal(state)) return null
  if (now < Date.parse(limit.reset_at) + patienceMs) return null
  const change = liftLimit(item, now)
  const told = repaired('rate_limit', `the machine did not wake at ${limit.reset_at}`)
  return { ...change, facts: [...change.facts, told] }
}
