import type { Fact } from '../../lib/journal/facts.ts'
import { limits } from '../../lib/limits.ts'
import { fail } from '../../lib/session/fail.ts'
import { settle } from '../../lib/session/handlers.ts'
import type { Change, SessionItem } from '../../lib/session/item.ts'
import { again } from '../../lib/session/recover.ts'
import { isTerminal, steps } from '../../lib/session/states.ts'
import { transition } from '../../lib/store/effects.ts'
import { giveBackSlot } from '../../lib/store/queue.ts'
import { endWorker } from './compute.ts'
import { restoredBy, takeUpReview } from './review.ts'
import { actor, type Round, repaired } from './round.ts'

/** Whether the session waits for a person, a slot or the clock: an execution that ended there took nothing along. */
const onlyWaits = ({ document }: SessionItem): boolean => {
  const { kind } = steps[document.step]
  return kind === 'gate' || kind === 'admission' || kind === 'wait'
}

const lostExecution = ({ id, runtime }: SessionItem) =>
  `execution ${id}-${runtime.attempt} ended before the session did`

/**
 * An execution that ended in the middle of work is an infrastructure fault, under the ceiling that they all share; one that
 * a service took along that was stopped in order is none.
 */
const faultOf = (item: SessionItem, planned: boolean): Fact[] => {
  const { step, state, infra_failures } = item.document
  if (planned || onlyWaits(item) || isTerminal(state)) return []
  const data = { step, cause: 'ExecutionLost', detail: lostExecution(item), count: infra_failures + 1 }
  return [{ type: 'infrastructure_fault', data }]
}

/** Whether the work made no progress in so many executions that another one is of no use. */
const isHopeless = (item: SessionItem, planned: boolean): boolean =>
  !planned &&
  !isTerminal(item.document.state) &&
  !onlyWaits(item) &&
  item.document.infra_failures + 1 >= limits.infraFailures

const givenUp = (item: SessionItem, facts: readonly Fact[]): Change => {
  const { step, infra_failures } = item.document
  const error = `${infra_failures + 1} faults, the last at ${step}: ${lostExecution(item)}`
  return fail(item, 'system', actor, { failure_kind: 'infrastructure', error }, facts)
}

/** How the session goes on: its engine's run again from the checkpoint if its worker is gone too, else as it is. */
const goneOn = (item: SessionItem, facts: readonly Fact[], { now, planned }: Round): Partial<Change> => {
  const { document, runtime } = item
  const isLost = runtime.compute?.status === 'stopped' && !planned && !isTerminal(document.state)
  if (document.step !== 'Code' || !isLost) return { facts }
  return again(item, facts, lostExecution(item), now)
}

/**
 * A new execution, which goes on at the step at which the session is; or settles it, where going on is of no use. `more`
 * is told of it if it goes on.
 */
const nextExecution = (item: SessionItem, more: readonly Fact[], round: Round): Change => {
  const attempt = item.runtime.attempt + 1
  const hopeless = isHopeless(item, round.planned)
  const at_step = hopeless ? 'Settle' : item.document.step
  const told = repaired('execution', `${lostExecution(item)}; the next one goes on at ${at_step}`)
  const facts = [...faultOf(item, round.planned), told]
  const end = hopeless ? givenUp(item, facts) : goneOn(item, [...facts, ...more], round)
  return {
    actor,
    facts: [
      ...(end.facts ?? []),
      { type: 'execution_started', data: { name: `${item.id}-${attempt}`, attempt, at_step } },
    ],
    runtime: {
      ...end.runtime,
      ...{ attempt, start_pending: true, execution_arn: null, task: null, answers: [] },
    },
    looked: true,
  }
}

/** Whether so many executions did not come through a Settle that it is done here. */
const mustSettleHere = ({ document, runtime }: SessionItem): boolean =>
  isTerminal(document.state) && runtime.attempt > limits.infraFailures

/** Does what Settle would have done. */
const settleHere = async (round: Round, item: SessionItem): Promise<void> => {
  const { platform } = round
  await endWorker(round, item, 'the session ended')
  // Nobody looks after a session once it says that it is settled.
  await giveBackSlot(platform, item.team, item.id, item.runtime.queued_at)
  await transition(platform, item, (now): Change | null => {
    if (now.runtime.settled) return null
    const change = settle(now)
    const told = repaired('execution', `${lostExecution(item)}; the session was settled without another one`)
    return { ...change, facts: [told, ...change.facts], runtime: { ...change.runtime, answers: [] } }
  })
}

/**
 * Carries a session on whose execution ended, failed, timed out or was stopped behind our back: a new execution goes on
 * at the same step, or the session ends as `infrastructure` where that was of no use often enough.
 */
export const redrive = async (round: Round, lost: SessionItem): Promise<void> => {
  if (mustSettleHere(lost)) return settleHere(round, lost)
  const { item, proof } = await takeUpReview(round.platform, lost)
  await transition(round.platform, item, (now) => {
    const { attempt, settled, resting } = now.runtime
    if (attempt !== lost.runtime.attempt || settled || resting) return null
    return nextExecution(now, proof ? restoredBy(proof, now) : [], round)
  })
}
