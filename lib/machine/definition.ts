import { limits } from '../limits.ts'
import { successors } from '../session/lifecycle.ts'
import { parks, type Step, stepSchema, steps } from '../session/states.ts'

/** Placeholder for the step function's ARN; the deployment substitutes it. */
export const stepFunctionPlaceholder = `\${StepFunctionArn}`

/** Steps and helper states of the machine, in Amazon States Language. */
type State = Record<string, unknown> & { Type: string }
export type Definition = {
  Comment: string
  StartAt: string
  TimeoutSeconds: number
  States: Record<string, State>
}

/** States that are not steps of the lifecycle: where an execution enters, recovers and ends. */
export const helperStates = {
  resume: 'Resume',
  recover: 'Recover',
  backOff: 'Back off',
  ended: 'Ended?',
  done: 'Done',
  stopped: 'Stopped',
  failed: 'Failed',
} as const

const afterState = (step: Step) => `After ${step}`
const daySecs = 86_400

/** Faults of Lambda itself; the same invocation may simply be made again. */
const lambdaRetry = [
  {
    ErrorEquals: [
      'Lambda.ServiceException',
      'Lambda.AWSLambdaException',
      'Lambda.SdkClientException',
      'Lambda.TooManyRequestsException',
    ],
    IntervalSeconds: 1,
    MaxAttempts: 4,
    BackoffRate: 2,
  },
]

const persistently = { ErrorEquals: ['States.ALL'], IntervalSeconds: 2, MaxAttempts: 5, BackoffRate: 2 }

const payload = (step: string) => ({
  step,
  'team.$': '$.team',
  'session_id.$': '$.session_id',
  'execution.$': '$$.Execution.Id',
  // Clocks go back: what comes before what is told by the session's journal, and handed on from step to step.
  'at.$': '$.last.at',
  'away.$': '$.last.away',
})

/** How long a step may take: a gate until its deadline, work as long as a run can be, a handler a minute. */
const timeLimits = (step: Step) => {
  switch (steps[step].kind) {
    case 'gate':
      return { TimeoutSeconds: Math.ceil(limits.gateMs / 1000) }
    case 'admission':
      return { TimeoutSeconds: 14 * daySecs }
    case 'wait':
      return { TimeoutSecondsPath: '$.last.wait' }
    case 'worker':
      return { TimeoutSeconds: limits.wallSecs.max + 2 * 3600, HeartbeatSeconds: limits.taskHeartbeatSecs }
    case 'handler':
      return { TimeoutSeconds: 60 }
  }
}

/** What a step's handler answers, as the state that the next one is chosen by. */
const selected = {
  'next.$': '$.Payload.next',
  'note.$': '$.Payload.note',
  'wait.$': '$.Payload.wait',
  'at.$': '$.Payload.at',
  'away.$': '$.Payload.away',
}

/**
 * The steps of an iteration follow each other without a choice between them, which keeps the history of a long session
 * short: the step that is entered looks itself where the session is, and an ended one leaves by the choice after Decide.
 */
const straight: Partial<Record<Step, Step>> = { Code: 'Validate', Validate: 'Decide' }

const following = (step: Step): string =>
  step === 'Settle' ? helperStates.ended : (straight[step] ?? afterState(step))

const task = (step: Step, functionArn: string): State => ({
  Type: 'Task',
  Comment: steps[step].purpose,
  Resource: parks(step)
    ? 'arn:aws:states:::lambda:invoke.waitForTaskToken'
    : 'arn:aws:states:::lambda:invoke',
  Parameters: {
    FunctionName: functionArn,
    Payload: { ...payload(step), ...(parks(step) ? { 'task_token.$': '$$.Task.Token' } : {}) },
  },
  ...(parks(step) ? {} : { ResultSelector: selected }),
  ResultPath: '$.last',
  ...timeLimits(step),
  // Settle has no work to recover: it is tried again, and what it could not end is left to the sweep.
  ...(step === 'Settle'
    ? { Retry: [...lambdaRetry, persistently] }
    : {
        Retry: lambdaRetry,
        Catch: [{ ErrorEquals: ['States.ALL'], ResultPath: '$.fault', Next: helperStates.recover }],
      }),
  Next: following(step),
})

const goTo = (step: Step) => ({ Variable: '$.last.next', StringEquals: step, Next: step })

const choice = (step: Step): State => ({
  Type: 'Choice',
  Choices: successors(step)
    .filter((next) => step !== 'Rest' || next === 'Settle')
    .map(goTo),
  // The session moved on without this execution's knowledge, for example by a cancel: go where it is. A session at rest
  // has nobody to carry it on until a person starts its next execution.
  Default: step === 'Rest' ? helperStates.stopped : helperStates.resume,
})

/**
 * The machine of one session attempt (DESIGN 2), plain Amazon States Language built from the lifecycle. Its payload is
 * ids and one short note, whatever the session does.
 */
export const buildDefinition = (functionArn: string = stepFunctionPlaceholder): Definition => {
  const States: Record<string, State> = {}
  for (const step of stepSchema.options) {
    States[step] = task(step, functionArn)
    if (following(step) === afterState(step)) States[afterState(step)] = choice(step)
  }
  States[helperStates.recover] = {
    Type: 'Task',
    Comment: 'Classify a fault; run the step again from the last checkpoint, or fail',
    Resource: 'arn:aws:states:::lambda:invoke',
    Parameters: {
      FunctionName: functionArn,
      Payload: {
        ...payload(helperStates.recover),
        'error.$': '$.fault.Error',
        'cause.$': '$.fault.Cause',
      },
    },
    // The whole state anew: what was told of the fault, which a function may make long, goes no further.
    ResultSelector: {
      'team.$': '$$.Execution.Input.team',
      'session_id.$': '$$.Execution.Input.session_id',
      'attempt.$': '$$.Execution.Input.attempt',
      last: { ...selected, 'back_off.$': '$.Payload.back_off' },
    },
    TimeoutSeconds: 60,
    Retry: [
      ...lambdaRetry,
      { ErrorEquals: ['States.ALL'], IntervalSeconds: 2, MaxAttempts: 5, BackoffRate: 2 },
    ],
    Next: helperStates.backOff,
  }
  States[helperStates.backOff] = { Type: 'Wait', SecondsPath: '$.last.back_off', Next: helperStates.resume }
  States[helperStates.resume] = {
    Type: 'Choice',
    Comment: 'Go to the step at which the session is',
    Choices: stepSchema.options.map(goTo),
    Default: helperStates.failed,
  }
  States[helperStates.ended] = {
    Type: 'Choice',
    Choices: [{ Variable: '$.last.next', StringEquals: 'failed', Next: helperStates.failed }],
    Default: helperStates.done,
  }
  States[helperStates.done] = { Type: 'Succeed' }
  States[helperStates.stopped] = { Type: 'Succeed', Comment: 'At rest until a person resumes it' }
  States[helperStates.failed] = { Type: 'Fail', ErrorPath: '$.last.next', CausePath: '$.last.note' }
  return {
    Comment: 'Gatehouse: one attempt of one coding session',
    StartAt: 'Admit',
    TimeoutSeconds: 60 * daySecs,
    States,
  }
}
