import { z } from 'zod'

/** The externally visible life of a session (spec/coder-session.md 3). */
export const stateSchema = z.enum([
  'created',
  'contract_proposed',
  'contract_confirmed',
  'running',
  'needs_approval',
  'merged',
  'reported',
  'failed',
  'abandoned',
])
export type State = z.infer<typeof stateSchema>

/** States without exits; a follow-up is a new session. */
export const terminalStates = [
  'merged',
  'reported',
  'failed',
  'abandoned',
] as const satisfies readonly State[]
const terminal: ReadonlySet<State> = new Set(terminalStates)
export const isTerminal = (state: State): boolean => terminal.has(state)

/** Where in the pipeline the work is (spec/workflow-state.md C.2). */
export const stageSchema = z.enum(['define', 'plan', 'code', 'validate', 'ship'])
export type Stage = z.infer<typeof stageSchema>

/** Who runs a step: our own handler, a worker, a person at a gate, the queue for a team's slots, or the clock. */
export type StepKind = 'handler' | 'worker' | 'gate' | 'admission' | 'wait'

/** The machine's steps in the order in which a person reads them. */
export const stepSchema = z.enum([
  'Admit',
  'Preflight',
  'PreflightGate',
  'Prepare',
  'Draft',
  'Baseline',
  'Confirm',
  'Plan',
  'Code',
  'Validate',
  'Decide',
  'RateLimit',
  'ValidateGate',
  'Verify',
  'Review',
  'Deliver',
  'Rest',
  'Settle',
])
export type Step = z.infer<typeof stepSchema>

/** What each step is for, in which stage it counts and who runs it. */
export const steps = {
  Admit: { stage: 'define', kind: 'admission', purpose: 'Wait for one of the team’s slots' },
  Preflight: {
    stage: 'define',
    kind: 'worker',
    purpose: 'Repository reachable, base resolves, engine runnable',
  },
  PreflightGate: {
    stage: 'define',
    kind: 'gate',
    purpose: 'A person decides on a session that could not start',
  },
  Prepare: { stage: 'define', kind: 'worker', purpose: 'Mirror, worktree and start commit' },
  Draft: { stage: 'define', kind: 'worker', purpose: 'Take the given contract or derive one' },
  Baseline: { stage: 'define', kind: 'worker', purpose: 'Every check once on the untouched tree' },
  Confirm: { stage: 'define', kind: 'gate', purpose: 'A person confirms or revises the contract' },
  Plan: { stage: 'plan', kind: 'handler', purpose: 'Start the clock of the run' },
  Code: { stage: 'code', kind: 'worker', purpose: 'One engine iteration' },
  Validate: {
    stage: 'validate',
    kind: 'worker',
    purpose: 'Evaluate the contract outside the engine’s reach',
  },
  Decide: {
    stage: 'validate',
    kind: 'handler',
    purpose: 'Green: verify; red: repair, ask, wait or fail, by the counters',
  },
  RateLimit: { stage: 'code', kind: 'wait', purpose: 'Wait, with nothing running, until a rate limit lifts' },
  ValidateGate: {
    stage: 'validate',
    kind: 'gate',
    purpose: 'A person decides on work that stays red or can’t go on',
  },
  Verify: {
    stage: 'validate',
    kind: 'worker',
    purpose: 'Evaluate a clean checkout of the commit to deliver',
  },
  Review: { stage: 'ship', kind: 'gate', purpose: 'A person approves exactly what would be delivered' },
  Deliver: { stage: 'ship', kind: 'worker', purpose: 'Deliver the reviewed commit' },
  Rest: {
    stage: 'ship',
    kind: 'handler',
    purpose: 'Stop the worker, release the slot; the session waits to be resumed',
  },
  Settle: { stage: 'ship', kind: 'handler', purpose: 'Stop the worker, release the slot' },
} as const satisfies Record<Step, { stage: Stage; kind: StepKind; purpose: string }>

export type StepOfKind<K extends StepKind> = {
  [S in Step]: (typeof steps)[S]['kind'] extends K ? S : never
}[Step]
export const isWorkerStep = (step: Step): step is StepOfKind<'worker'> => steps[step].kind === 'worker'
export const isGateStep = (step: Step): step is StepOfKind<'gate'> => steps[step].kind === 'gate'
/** Stages in the order in which a session goes through them. */
const order = stageSchema.options
export const isLaterStage = (stage: Stage, than: Stage): boolean => order.indexOf(stage) > order.indexOf(than)

/** The stage that a session is in at a step; at rest and at its end it stays in the stage that it left off in. */
export const stageAt = (step: Step, before: Stage): Stage =>
  step === 'Rest' || step === 'Settle' ? before : steps[step].stage

/** Steps that park on a task token until somebody outside the machine answers. */
export const parks = (step: Step): boolean => steps[step].kind !== 'handler'

export const failureKindSchema = z.enum([
  'budget_exhausted',
  'auth_required',
  'configuration',
  'infrastructure',
  'stalled',
  'error',
])
export type FailureKind = z.infer<typeof failureKindSchema>
