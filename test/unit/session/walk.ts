import { newId } from '../../../lib/ids.ts'
import type { Fact } from '../../../lib/journal/facts.ts'
import { advance } from '../../../lib/session/advance.ts'
import { complete } from '../../../lib/session/completions.ts'
import { confirm, revise } from '../../../lib/session/contract-decisions.ts'
import { answer, cancel, resume, steer } from '../../../lib/session/controls.ts'
import { decide } from '../../../lib/session/decide.ts'
import { decideGate } from '../../../lib/session/gate-decisions.ts'
import {
  computeAlive,
  dispatch,
  enterGate,
  liftLimit,
  plan,
  rest,
  settle,
} from '../../../lib/session/handlers.ts'
import { type Change, changeItem, type SessionItem, sessionItemSchema } from '../../../lib/session/item.ts'
import { recover } from '../../../lib/session/recover.ts'
import { approve, reject, requestChanges } from '../../../lib/session/review-decisions.ts'
import { isTerminal, isWorkerStep } from '../../../lib/session/states.ts'
import {
  appendEvents,
  ask,
  expireQuestion,
  nextCommand,
  renewLease,
  requireLease,
  retain,
  takeLease,
} from '../../../lib/session/worker.ts'
import { aCheckpoint, aContract, ada, epochMs, newSession, system } from '../../support/sessions.ts'
import { type Here, pick, resultOf } from './walk-results.ts'

/** What may happen to a session next; `dice` picks among the variants of it, the wrong ones included. */
export type Move = { kind: keyof typeof moves; dice: number }

type Next = Change | null

const leaseOf = ({ item, dice }: Here) => ({
  worker_id: dice % 19 === 0 ? 'wrk_other' : (item.runtime.lease.worker_id ?? 'wrk_none'),
  epoch: item.runtime.lease.epoch - (dice % 23 === 0 ? 1 : 0),
})

const hashOf = ({ item, dice }: Here) =>
  dice % 7 === 0 ? 'sha256:old' : (item.document.contract_hash ?? 'none')
const reviewOf = ({ item, dice }: Here) =>
  dice % 7 === 0 ? newId('rev') : (item.document.review_identity?.review_id ?? newId('rev'))
const gateOf = ({ item, dice }: Here) =>
  dice % 7 === 0 ? newId('gate') : (item.document.gate?.id ?? newId('gate'))
const questionOf = ({ item, dice }: Here) =>
  dice % 7 === 0 ? newId('req') : (item.document.question?.request_id ?? newId('req'))

/** The machine enters the step at which the session is, as the step handler does. */
const enter = ({ item, now }: Here): Next => {
  const { step } = item.document
  const token = newId('evt')
  if (item.runtime.settled || item.runtime.resting) return null
  if (step === 'Admit') return { actor: system, facts: [], runtime: { task: { step, token } } }
  if (isWorkerStep(step)) return dispatch(item, step, token, now).change
  if (step === 'Plan') return plan(item, now)
  if (step === 'Decide') return decide(item, now).change
  if (step === 'Rest') return rest()
  return step === 'Settle' ? settle(item) : enterGate(item, step, token)
}

const events: readonly Fact[] = [{ type: 'error', data: { message: 'half a \ud83d character' } }]

const finish = (here: Here): Next => {
  const { item, now, dice } = here
  requireLease(item, leaseOf(here))
  return item.runtime.command
    ? complete(item, resultOf(here), {
        ...{ actor: { kind: 'worker', id: 'wrk' }, events, artifact: 'results', now },
        reviewId: dice % 2 === 0 ? newId('rev') : item.runtime.command.id.replace('cmd_', 'rev_'),
      })
    : null
}

/** The machine's own clock ends the wait for a rate limit. */
const lift = ({ item, now }: Here): Next => {
  const over = Math.max(now, Date.parse(item.document.rate_limit?.reset_at ?? ''))
  return recover(item, { error: 'States.Timeout', cause: '', at: item.journal_head.sequence }, over)
}

/** What carries the session on from where it is, as a machine, a worker and a willing person would. */
const onward = (here: Here): Next => {
  const { item, now, dice } = here
  const { runtime, document } = item
  const { step } = document
  if (step === 'Rest' && runtime.resting) return moves.resume({ ...here, dice: 1 })
  if (!runtime.task) return enter(here)
  if (isWorkerStep(step)) {
    if (!computeAlive(item, now)) return enter(here)
    if (runtime.compute?.status === 'starting') return moves.lease({ ...here, dice: 1 })
    return runtime.command ? finish(here) : enter(here)
  }
  switch (step) {
    case 'Admit':
      return moves.admit(here)
    case 'RateLimit':
      return lift(here)
    case 'Confirm':
      return moves.confirm(here)
    case 'Review':
      return pick([moves.approve, moves.approve, moves.changes, moves.reject] as const, dice >> 3)(here)
    default:
      return moves.gate(here)
  }
}

export const moves = {
  onward,
  enter,
  /** A step's handler is run where the session is not: only the lifecycle stands between. */
  stray: ({ item, now, dice }: Here): Next =>
    pick(
      [() => plan(item, now), () => decide(item, now).change, () => settle(item), () => liftLimit(item, now)],
      dice,
    )(),
  admit: ({ item }: Here): Next =>
    advance(item, { trigger: 'admitted', by: 'system', actor: system, note: '' }),
  lease: ({ item, now, dice }: Here): Next =>
    takeLease(
      item,
      dice % 19 === 0 ? 'wrk_other' : (item.runtime.compute?.id ?? 'wrk_none'),
      `claim-${dice % 3}`,
      now,
    ),
  beat: (here: Here): Next => renewLease(here.item, leaseOf(here), here.now),
  poll: (here: Here): Next => {
    const next = nextCommand(here.item, leaseOf(here))
    return next.kind === 'stop' ? next.change : null
  },
  append: (here: Here): Next =>
    appendEvents(here.item, leaseOf(here), {
      id: `batch-${here.dice % 3}`,
      facts: [{ type: 'error', data: { message: 'something' } }],
      fresh: `receipt-${here.dice}`,
      receipt: here.dice % 2 === 0 ? null : (here.item.runtime.receipt?.id ?? null),
    }),
  finish,
  /** A result for a command that nobody gave. */
  forge: (here: Here): Next =>
    complete(here.item, resultOf(here), {
      ...{ actor: { kind: 'worker', id: 'wrk' }, events: [], artifact: 'results', now: here.now },
      reviewId: newId('rev'),
    }),
  retain: (here: Here): Next => retain(here.item, leaseOf(here), { ...aCheckpoint(), id: 'late' }),
  confirm: (here: Here): Next =>
    confirm(
      here.item,
      { contract_hash: hashOf(here), contract: here.dice % 5 === 0 ? other(here.dice) : null },
      ada,
    ),
  revise: (here: Here): Next => revise(here.item, other(here.dice), ada),
  approve: (here: Here): Next => approve(here.item, { review_id: reviewOf(here), comment: null }, ada),
  reject: (here: Here): Next => reject(here.item, { review_id: reviewOf(here), reason: 'no' }, ada),
  changes: (here: Here): Next =>
    requestChanges(here.item, { review_id: reviewOf(here), text: 'more' }, ada, here.now),
  gate: (here: Here): Next => {
    const action = pick(['advance', 'loop_back', 'loop_back', 'abort'] as const, here.dice)
    return decideGate(here.item, { gate_id: gateOf(here), action, note: null }, ada, here.now)
  },
  steer: ({ item, dice }: Here): Next => steer(item, `hint ${dice % 10}`, ada),
  question: (here: Here): Next => {
    const asked = { request_id: here.dice % 3 === 0 ? questionOf(here) : newId('req'), prompt: 'which?' }
    return ask(here.item, leaseOf(here), asked, here.now)
  },
  answer: (here: Here): Next => answer(here.item, { request_id: questionOf(here), text: 'that' }, ada),
  expire: ({ item, now, dice }: Here): Next => expireQuestion(item, system, now + (dice % 2) * 600_000),
  resume: ({ item, now, dice }: Here): Next =>
    resume(item, pick([null, null, 'define', 'plan', 'code', 'validate'] as const, dice), ada, now),
  cancel: ({ item }: Here): Next => cancel(item, 'enough', ada),
  /** A fault as the machine tells it, now and then a second time; one in four is a time that is over. */
  fault: ({ item, now, dice }: Here): Next =>
    isTerminal(item.document.state)
      ? null
      : recover(
          item,
          {
            error: pick(['States.Timeout', 'WorkerLost', 'States.HeartbeatTimeout', 'SetupFailed'], dice),
            cause: '\u{1f600}'.repeat(300),
            at: dice % 3 === 0 ? 0 : item.journal_head.sequence,
          },
          now + (dice % 2 === 0 ? 7 * 86_400_000 : 0),
        ),
  /** What was decided is carried out: the journal has a part of the outbox, the machine all answers. */
  drain: ({ item, dice }: Here): Next => {
    const upTo = item.outbox[dice % Math.max(1, item.outbox.length)]?.sequence
    return {
      ...{ actor: system, facts: [], runtime: { answers: [], start_pending: false } },
      ...(upTo === undefined ? {} : { drained: upTo }),
    }
  },
} as const

const other = (dice: number) =>
  aContract({ checks: [{ ...checkOf(), command: `./run-tests ${dice % 4}` }], description: `${dice}` })
const checkOf = () => {
  const [check] = aContract().checks
  if (!check) throw new Error('a contract without checks')
  return check
}

/** A session that begins in one of many ways: by mode and limits, to an end on its way, authorised, given or continued. */
export const begin = (dice: number): SessionItem =>
  newSession({
    ...{ mode: pick(['supervise', 'auto'] as const, dice), max_iterations: 1 + (dice % 5) },
    ...{ repair_invokes: pick([null, 0, 5], dice >> 1), max_wall_secs: pick([60, 3600], dice >> 2) },
    ...{ intent: 'a \ud800 half', transient_retries: pick([null, 0, 3], dice >> 3) },
    until: pick([null, null, 'define', 'plan', 'code', 'validate'] as const, dice),
    yes_ship: dice % 3 === 0 ? { by: 'grace' } : null,
    budget_usd: dice % 4 === 1 ? 1 : null,
    keep_workspace_on_cancel: dice % 2 === 1,
    keep_workspace_on_failure: dice % 5 === 0,
    ...(dice % 6 === 5 ? { contract: null } : {}),
    ...(dice % 7 === 0
      ? { resumed_from: newId('ses'), checkpoint: aCheckpoint(), steering_messages: ['a'] }
      : {}),
  })

/** The item as a store gives it back. */
export const stored = (item: SessionItem): SessionItem =>
  sessionItemSchema.parse(JSON.parse(JSON.stringify(item)))

/** Makes one move; what a refused move throws comes through, with nothing changed. */
export const make = (item: SessionItem, move: Move, now: number): SessionItem => {
  const change = moves[move.kind]({ item, now: epochMs + now, dice: move.dice })
  return change ? changeItem(item, change, new Date(epochMs + now).toISOString()) : item
}
