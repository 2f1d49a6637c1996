import type { Role } from '../team/roles.ts'
import { isTerminal, type State, type Step, stateSchema } from './states.ts'

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
  /** The step that the machine takes next; `same` to run the step once more. */
  next: Step | 'same'
  guard?: string
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
    trigger: 'contract_evaluated',
    at: 'Validate',
    from: ['running'],
    to: 'same',
    by: ['worker'],
    next: 'Decide',
  },
  {
    trigger: 'accepted',
    at: 'Decide',
    from: ['running'],
    to: 'same',
    by: ['system'],
    next: 'Verify',
    guard: 'every check is green',
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
  { trigger: 'verify_red', at: 'Verify', from: ['running'], to: 'same', by: ['worker'], next: 'Decide' },
  {
    trigger: 'verified',
    at: 'Verify',
    from: ['running'],
    to: 'needs_approval',
    by: ['worker'],
    next: 'Review',
    guard: 'green on a clean checkout of the commit to deliver',
  },
  {
    trigger: 'approved',
    at: 'Review',
    from: ['needs_approval'],
    to: 'same',
    by: ['approver'],
    next: 'Deliver',
    guard: 'the review is the one named',
  },
  {
    trigger: 'finding_accepted',
    at: 'Review',
    from: ['needs_approval'],
    to: 'reported',
    by: ['approver'],
    next: 'Settle',
    guard: 'the review is a finding',
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

/** What a trigger leads to from where a session is; null where the table has no such move. */
export const move = (
  trigger: Trigger,
  by: By,
  at: { state: State; step: Step },
): { to: State; next: Step } | null => {
  const row = transitionOf(trigger)
  const legal = (row.at === 'any' || row.at === at.step) && row.from.includes(at.state) && row.by.includes(by)
  if (!legal) return null
  return { to: row.to === 'same' ? at.state : row.to, next: row.next === 'same' ? at.step : row.next }
}

/** The steps that can follow a step, in table order; every step but Settle can end in Settle. */
export const successors = (step: Step): Step[] => {
  const rows: readonly Transition[] = lifecycle
  const nexts = rows
    .filter((row) => row.at === step || (row.at === 'any' && step !== 'Settle'))
    .map((row) => row.next)
  return [...new Set(nexts.filter((next) => next !== 'same'))]
}
