import type { Role } from '../team/roles.ts'
import {
  isLaterStage,
  isTerminal,
  type Stage,
  type State,
  type Step,
  stageAt,
  stageSchema,
  stateSchema,
  steps,
} from './states.ts'

/** Who may pull a trigger: a person of at least this role, a worker under its lease, or a step of the machine. */
export type By = Extract<Role, 'operator' | 'approver'> | 'worker' | 'system'

export type Transition = {
  trigger: string
  /** The machine steps at which the trigger is legal; `any` for those that may come at every step. */
  at: Step | 'any'
  from: readonly State[]
  /** The state after it; `same` where only the step moves. */
  to: State | 'same'
  by: readonly By[]
  /** The step that the machine takes next; `same` to run the step once more, `held` for the one held back by `until`. */
  next: Step | 'same' | 'held'
  guard?: string
  /** It leads on to a later stage only to look at what is there; it is no transition for the counters. */
  interrupts?: true
}

const live: readonly State[] = stateSchema.options.filter((state) => !isTerminal(state))
const ended: readonly State[] = stateSchema.options.filter(isTerminal)

/**
 * Every legal transition of a session (DESIGN 2). The conditional writes, the state machine's definition and the
 * diagram are all made from this table; nothing restates it.
 */
export const lifecycle = [
  {
    trigger: 'admitted',
    at: 'Admit',
    from: ['created'],
    to: 'same',
    by: ['system'],
    next: 'Preflight',
    guard: 'the team has a free slot',
  },
  {
    trigger: 'preflight_passed',
    at: 'Preflight',
    from: ['created'],
    to: 'same',
    by: ['worker'],
    next: 'Prepare',
  },
  {
    trigger: 'preflight_gated',
    at: 'Preflight',
    from: ['created'],
    to: 'same',
    by: ['worker'],
    next: 'PreflightGate',
    guard: 'something is missing, with preflight retries left',
  },
  {
    trigger: 'preflight_waived',
    at: 'PreflightGate',
    from: ['created'],
    to: 'same',
    by: ['approver'],
    next: 'Prepare',
    guard: 'the gate is the one named',
  },
  {
    trigger: 'preflight_repeated',
    at: 'PreflightGate',
    from: ['created'],
    to: 'same',
    by: ['approver'],
    next: 'Preflight',
    guard: 'the gate is the one named',
  },
  {
    trigger: 'preflight_aborted',
    at: 'PreflightGate',
    from: ['created'],
    to: 'abandoned',
    by: ['approver'],
    next: 'Settle',
    guard: 'the gate is the one named',
  },
  { trigger: 'prepared', at: 'Prepare', from: ['created'], to: 'same', by: ['worker'], next: 'Draft' },
  {
    trigger: 'contract_proposed',
    at: 'Draft',
    from: ['created'],
    to: 'contract_proposed',
    by: ['worker'],
    next: 'Baseline',
    guard: 'the contract validates',
  },
  {
    trigger: 'baseline_measured',
    at: 'Baseline',
    from: ['contract_proposed'],
    to: 'same',
    by: ['worker'],
    next: 'Confirm',
  },
  {
    trigger: 'contract_revised',
    at: 'Confirm',
    from: ['contract_proposed'],
    to: 'same',
    by: ['operator'],
    next: 'Baseline',
    guard: 'the checks changed and validate',
  },
  {
    trigger: 'contract_confirmed',
    at: 'Confirm',
    from: ['contract_proposed'],
    to: 'contract_confirmed',
    by: ['approver', 'system'],
    next: 'Plan',
    guard: 'the contract is the one named; by itself only in mode auto and if it gates something',
  },
  {
    trigger: 'planned',
    at: 'Plan',
    from: ['contract_confirmed'],
    to: 'running',
    by: ['system'],
    next: 'Code',
  },
  { trigger: 'engine_finished', at: 'Code', from: ['running'], to: 'same', by: ['worker'], next: 'Validate' },
  {
    trigger: 'engine_interrupted',
    at: 'Code',
    from: ['running'],
    to: 'same',
    by: ['worker'],
    next: 'Validate',
    guard: 'the engine died, was not there or met a limit; what it left is evaluated all the same',
    interrupts: true,
  },
  {
    trigger: 'resumes_exhausted',
    at: 'Code',
    from: ['running'],
    to: 'same',
    by: ['system'],
    next: 'ValidateGate',
    guard: 'this run of the engine was resumed from its checkpoint too often',
    interrupts: true,
  },
  {
    trigger: 'contract_evaluated',
    at: 'Validate',
    from: ['running'],
    to: 'same',
    by: ['worker'],
    next: 'Decide',
  },
  {
    trigger: 'validate_setup_failed',
    at: 'Validate',
    from: ['running'],
    to: 'same',
    by: ['system'],
    next: 'ValidateGate',
    guard: 'the contract’s setup failed too often in the worktree',
  },
  {
    trigger: 'verify_setup_failed',
    at: 'Verify',
    from: ['running'],
    to: 'same',
    by: ['system'],
    next: 'ValidateGate',
    guard: 'the contract’s setup failed too often in the clean checkout',
  },
  {
    trigger: 'accepted',
    at: 'Decide',
    from: ['running'],
    to: 'same',
    by: ['system'],
    next: 'Verify',
    guard: 'every check is green, or the engine holds that nothing should change',
  },
  {
    trigger: 'repair',
    at: 'Decide',
    from: ['running'],
    to: 'same',
    by: ['system'],
    next: 'Code',
    guard: 'red, with iterations, repairs and time left',
  },
  {
    trigger: 'retried',
    at: 'Decide',
    from: ['running'],
    to: 'same',
    by: ['system'],
    next: 'Code',
    guard: 'red, and the engine died or was not there; the same iteration once more',
  },
  {
    trigger: 'rate_limited',
    at: 'Decide',
    from: ['running'],
    to: 'same',
    by: ['system'],
    next: 'RateLimit',
    guard: 'red, and the engine met a rate limit whose end is known',
  },
  {
    trigger: 'limit_lifted',
    at: 'RateLimit',
    from: ['running'],
    to: 'same',
    by: ['system'],
    next: 'Code',
    guard: 'the reset time has come',
  },
  {
    trigger: 'validate_gated',
    at: 'Decide',
    from: ['running'],
    to: 'same',
    by: ['system'],
    next: 'ValidateGate',
    guard: 'red too often, or checks that could not run and no repairs left',
  },
  {
    trigger: 'red_accepted',
    at: 'ValidateGate',
    from: ['running'],
    to: 'same',
    by: ['approver'],
    next: 'Verify',
    guard: 'the gate is the one named; the checks that are red now may be red at review',
  },
  {
    trigger: 'work_repeated',
    at: 'ValidateGate',
    from: ['running'],
    to: 'same',
    by: ['approver'],
    next: 'Code',
    guard: 'the gate is the one named; iterations left',
  },
  {
    trigger: 'evaluation_repeated',
    at: 'ValidateGate',
    from: ['running'],
    to: 'same',
    by: ['approver'],
    next: 'Validate',
    guard:
      'the gate is the one named, and is about the contract’s setup; the work is evaluated again as it is',
  },
  {
    trigger: 'validate_aborted',
    at: 'ValidateGate',
    from: ['running'],
    to: 'abandoned',
    by: ['approver'],
    next: 'Settle',
    guard: 'the gate is the one named',
  },
  { trigger: 'verify_red', at: 'Verify', from: ['running'], to: 'same', by: ['worker'], next: 'Decide' },
  {
    trigger: 'verified',
    at: 'Verify',
    from: ['running'],
    to: 'needs_approval',
    by: ['worker'],
    next: 'Review',
    guard: 'green on a clean checkout of the commit to deliver, but for what a person accepted as red',
  },
  {
    trigger: 'approved',
    at: 'Review',
    from: ['needs_approval'],
    to: 'same',
    by: ['approver', 'system'],
    next: 'Deliver',
    guard:
      'the review is the one named; by itself only with yes_ship, a trusted contract, nothing disclosed, and nobody’s answer before',
  },
  {
    trigger: 'finding_accepted',
    at: 'Review',
    from: ['needs_approval'],
    to: 'reported',
    by: ['approver', 'system'],
    next: 'Settle',
    guard:
      'the review is a finding; by itself only in mode auto and if the baseline of a trusted contract proves it',
  },
  {
    trigger: 'changes_requested',
    at: 'Review',
    from: ['needs_approval'],
    to: 'running',
    by: ['approver'],
    next: 'Code',
    guard: 'iterations left',
  },
  {
    trigger: 'rejected',
    at: 'Review',
    from: ['needs_approval'],
    to: 'abandoned',
    by: ['approver'],
    next: 'Settle',
  },
  {
    trigger: 'delivered',
    at: 'Deliver',
    from: ['needs_approval'],
    to: 'merged',
    by: ['worker'],
    next: 'Settle',
  },
  {
    trigger: 'delivery_failed',
    at: 'Deliver',
    from: ['needs_approval'],
    to: 'same',
    by: ['worker'],
    next: 'Review',
  },
  {
    trigger: 'recovered',
    at: 'any',
    from: live,
    to: 'same',
    by: ['system'],
    next: 'same',
    guard: 'infrastructure faults below their ceiling',
  },
  {
    trigger: 'stopped',
    at: 'any',
    from: live,
    to: 'same',
    by: ['system'],
    next: 'Rest',
    guard: 'the stage that was left is the one named by until',
  },
  {
    trigger: 'resumed',
    at: 'Rest',
    from: live,
    to: 'same',
    by: ['operator'],
    next: 'held',
  },
  { trigger: 'failed', at: 'any', from: live, to: 'failed', by: ['worker', 'system'], next: 'Settle' },
  { trigger: 'cancelled', at: 'any', from: live, to: 'abandoned', by: ['operator'], next: 'Settle' },
  { trigger: 'settled', at: 'Settle', from: ended, to: 'same', by: ['system'], next: 'same' },
] as const satisfies readonly Transition[]

export type Trigger = (typeof lifecycle)[number]['trigger']

/** The row of a trigger. */
export const transitionOf = (trigger: Trigger): Transition => {
  const row = lifecycle.find((candidate) => candidate.trigger === trigger)
  if (!row) throw new Error(`no transition ${trigger}`)
  return row
}

/** Where a session is, as far as the table is concerned. */
export type Place = { state: State; step: Step; resume_at: Step | null }

/** What a trigger leads to from where a session is; null where the table has no such move. */
export const move = (trigger: Trigger, by: By, at: Place): { to: State; next: Step } | null => {
  const row = transitionOf(trigger)
  const legal = (row.at === 'any' || row.at === at.step) && row.from.includes(at.state) && row.by.includes(by)
  if (!legal) return null
  const next = row.next === 'same' ? at.step : row.next === 'held' ? at.resume_at : row.next
  return next === null ? null : { to: row.to === 'same' ? at.state : row.to, next }
}

/**
 * Whether a move is a transition in the sense of the counters and of `until` (spec/workflow-state.md C.3, C.6): on to a
 * later stage. A loop back is none, and neither is the look at what an interrupted engine left.
 */
export const isTransition = (trigger: string, from: Stage, next: Step): boolean =>
  isLaterStage(stageAt(next, from), from) &&
  !lifecycle.some((row: Transition) => row.trigger === trigger && row.interrupts)

/**
 * Whether a move goes on from a stage, so that `until` holds it back there (spec/workflow-state.md C.6). The look at what
 * an interrupted engine left goes on from code only when it comes to Verify: until then the engine may run again.
 */
export const goesOnFrom = (stage: Stage, trigger: string, from: Stage, next: Step): boolean =>
  from === stage ? isTransition(trigger, from, next) : isLaterStage(from, stage) && next === 'Verify'

/** Where `until` can hold a session back: the first step of each later stage, and Verify. */
const heldSteps = (): Step[] => {
  const rows: readonly Transition[] = lifecycle
  const held = rows.filter(
    ({ trigger, at, next }) =>
      at !== 'any' &&
      next !== 'same' &&
      next !== 'held' &&
      stageSchema.options.some((stage) => goesOnFrom(stage, trigger, steps[at].stage, next)),
  )
  return held.map(({ next }) => next).filter((next) => next !== 'same' && next !== 'held')
}

/** The steps that can follow a step, in table order; every step but Settle can end in Settle. */
export const successors = (step: Step): Step[] => {
  const rows: readonly Transition[] = lifecycle
  const nexts = rows
    .filter((row) => row.at === step || (row.at === 'any' && step !== 'Settle'))
    .flatMap((row) => (row.next === 'held' ? heldSteps() : [row.next]))
  return [...new Set(nexts.filter((next) => next !== 'same'))].filter(
    (next) => next !== 'Rest' || step !== 'Rest',
  )
}
