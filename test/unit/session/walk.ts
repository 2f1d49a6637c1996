import { newId } from '../../../lib/ids.ts'
import type { Fact } from '../../../lib/journal/facts.ts'
import { advance } from '../../../lib/session/advance.ts'
import { complete } from '../../../lib/session/completions.ts'
import { approve, cancel, confirm, reject, requestChanges, revise } from '../../../lib/session/decisions.ts'
import {
  computeAlive,
  decide,
  dispatch,
  enterGate,
  plan,
  recover,
  settle,
} from '../../../lib/session/handlers.ts'
import { type Change, changeItem, type SessionItem, sessionItemSchema } from '../../../lib/session/item.ts'
import type { Result } from '../../../lib/session/protocol.ts'
import { isGateStep, isTerminal, isWorkerStep } from '../../../lib/session/states.ts'
import {
  appendEvents,
  nextCommand,
  renewLease,
  requireLease,
  takeLease,
} from '../../../lib/session/worker.ts'
import {
  aCheckpoint,
  aContract,
  ada,
  aResult,
  epochMs,
  newSession,
  sha,
  system,
} from '../../support/sessions.ts'

/** What may happen to a session next; `dice` picks among the variants of it, the wrong ones included. */
export type Move = { kind: keyof typeof moves; dice: number }

type Here = { item: SessionItem; now: number; dice: number }
type Next = Change | null

const pick = <Value>(from: readonly [Value, ...Value[]], dice: number): Value =>
  from[dice % from.length] ?? from[0]

const results = (dice: number) => [
  aResult({ verdict: pick(['passed', 'passed', 'failed', 'could_not_run', 'flaky'], dice) }),
  ...(dice % 3 === 0 ? [aResult({ name: 'shape', verdict: 'captured' })] : []),
]

const resultOf = ({ item, dice }: Here): Result => {
  if (dice % 17 === 0) return { outcome: 'failed', failure_kind: 'configuration', error: 'x \ud800 y' }
  if (dice % 11 === 0) return { outcome: 'fault', detail: 'lost the network' }
  const step =
    dice % 13 === 0 ? pick(['Preflight', 'Code', 'Verify', 'Deliver'] as const, dice) : item.document.step
  switch (step) {
    case 'Prepare':
      return { outcome: step, base: sha('a'), start_commit: sha('a'), tree: sha('b') }
    case 'Draft': {
      const contract = dice % 7 === 0 ? aContract({ checks: [] }) : (item.document.contract ?? aContract())
      return { outcome: step, contract, provenance: 'operator_supplied', sources: [], warnings: [] }
    }
    case 'Baseline':
      return { outcome: step, results: results(dice), captures: {} }
    case 'Code':
      return {
        ...{ outcome: step, status: 'finished', exit_code: 0, signal: null, duration_ms: 1, output_bytes: 0 },
        ...{ artifact: null, survivors: 0, changed: true, checkpoint: aCheckpoint() },
      }
    case 'Validate':
      return { outcome: step, results: results(dice), tree_edited: false }
    case 'Verify': {
      const review = {
        ...{
          kind: pick(['change', 'finding'] as const, dice >> 2),
          base: sha('a'),
          commit: sha('e'),
          tree: sha('f'),
        },
        ...{ stat: { files: 1, insertions: 1, deletions: 0 }, patch_full_bytes: 9, body_artifact: 'review' },
        ...{ finding: null, checkpoint: aCheckpoint() },
      }
      return {
        outcome: step,
        results: results(dice),
        tree_edited: false,
        review: dice % 5 === 0 ? null : review,
      }
    }
    case 'Deliver':
      return {
        outcome: step,
        delivered:
          dice % 2 === 0
            ? { ok: true, branch: 'gatehouse/x', commit: sha('e') }
            : { ok: false, problem: 'moved', detail: 'the branch moved' },
      }
    default:
      return { outcome: 'Preflight' }
  }
}

const leaseOf = ({ item, dice }: Here) => ({
  worker_id: dice % 19 === 0 ? 'wrk_other' : (item.runtime.lease.worker_id ?? 'wrk_none'),
  epoch: item.runtime.lease.epoch - (dice % 23 === 0 ? 1 : 0),
})

const hashOf = ({ item, dice }: Here) =>
  dice % 7 === 0 ? 'sha256:old' : (item.document.contract_hash ?? 'none')
const reviewOf = ({ item, dice }: Here) =>
  dice % 7 === 0 ? newId('rev') : (item.document.review_identity?.review_id ?? newId('rev'))

/** The machine enters the step at which the session is, as the step handler does. */
const enter = ({ item, now }: Here): Next => {
  const { step } = item.document
  const token = newId('evt')
  if (item.runtime.settled) return null
  if (step === 'Admit') return { actor: system, facts: [], runtime: { task: { step, token } } }
  if (isGateStep(step)) return enterGate(item, step, token)
  if (isWorkerStep(step)) return dispatch(item, step, token, now).change
  if (step === 'Plan') return plan(item, now)
  if (step === 'Decide') return decide(item, now).change
  return settle(item)
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

/** What carries the session on from where it is, as a machine, a worker and a willing person would. */
const onward = (here: Here): Next => {
  const { item, now, dice } = here
  const { runtime, document } = item
  const { step } = document
  if (!runtime.task) return enter(here)
  if (step === 'Admit') return moves.admit(here)
  if (isWorkerStep(step)) {
    if (!computeAlive(item, now)) return enter(here)
    if (runtime.compute?.status === 'starting') return moves.lease({ ...here, dice: 1 })
    return runtime.command ? finish(here) : enter(here)
  }
  const answers = [moves.approve, moves.approve, moves.changes, moves.reject] as const
  return step === 'Confirm' ? moves.confirm(here) : pick(answers, dice >> 3)(here)
}

export const moves = {
  onward,
  enter,
  /** A step's handler is run where the session is not: only the lifecycle stands between. */
  stray: ({ item, now, dice }: Here): Next =>
    pick([() => plan(item, now), () => decide(item, now).change, () => settle(item)], dice)(),
  admit: ({ item }: Here): Next =>
    advance(item, { trigger: 'admitted', by: 'system', actor: system, note: '' }),
  lease: ({ item, now, dice }: Here): Next =>
    takeLease(item, dice % 19 === 0 ? 'wrk_other' : (item.runtime.compute?.id ?? 'wrk_none'), now),
  beat: (here: Here): Next => renewLease(here.item, leaseOf(here), here.now),
  ask: (here: Here): Next => {
    const next = nextCommand(here.item, leaseOf(here))
    return next.kind === 'stop' ? next.change : null
  },
  append: (here: Here): Next =>
    appendEvents(here.item, leaseOf(here), `batch-${here.dice % 3}`, [
      { type: 'error', data: { message: 'something' } },
    ]),
  finish,
  /** A result for a command that nobody gave. */
  forge: (here: Here): Next =>
    complete(here.item, resultOf(here), {
      ...{ actor: { kind: 'worker', id: 'wrk' }, events: [], artifact: 'results', now: here.now },
      reviewId: newId('rev'),
    }),
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
  cancel: ({ item }: Here): Next => cancel(item, 'enough', ada),
  fault: ({ item, dice }: Here): Next =>
    isTerminal(item.document.state)
      ? null
      : recover(item, {
          step: item.document.step,
          error: pick(['States.Timeout', 'WorkerLost', 'States.HeartbeatTimeout'], dice),
          cause: '\u{1f600}'.repeat(300),
        }),
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

export const begin = (dice: number): SessionItem =>
  newSession({
    ...{ mode: pick(['supervise', 'auto'] as const, dice), max_iterations: 1 + (dice % 5) },
    ...{ repair_invokes: pick([null, 0, 5], dice >> 1), max_wall_secs: pick([60, 3600], dice >> 2) },
    ...{ intent: 'a \ud800 half' },
  })

/** The item as a store gives it back. */
export const stored = (item: SessionItem): SessionItem =>
  sessionItemSchema.parse(JSON.parse(JSON.stringify(item)))

/** Makes one move; what a refused move throws comes through, with nothing changed. */
export const make = (item: SessionItem, move: Move, now: number): SessionItem => {
  const change = moves[move.kind]({ item, now: epochMs + now, dice: move.dice })
  return change ? stored(changeItem(item, change, new Date(epochMs + now).toISOString())) : item
}
