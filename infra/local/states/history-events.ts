import { z } from 'zod'

/**
 * An event as GetExecutionHistory answers it: `timestamp` in seconds since the epoch, details under the key that belongs
 * to the type. Events count from 1; the first state's entry follows event 0.
 */
export const historyEventSchema = z.looseObject({
  id: z.int(),
  previousEventId: z.int(),
  type: z.string(),
  timestamp: z.number(),
})
export type HistoryEvent = z.output<typeof historyEventSchema>

/** An event's type and details, before it has its place in a history. */
export type EventBody = { type: string } & Record<string, unknown>

export interface Failure {
  error?: string | undefined
  cause?: string | undefined
}

/** A task's service integration, as events name it. */
export type TaskResource = 'invoke' | 'invoke.waitForTaskToken'

const whole = { truncated: false }
const lambda = (resource: TaskResource) => ({ resourceType: 'lambda', resource })
const stated = ({ error, cause }: Failure) => ({
  ...(error === undefined ? {} : { error }),
  ...(cause === undefined ? {} : { cause }),
})

export const executionStarted = (input: string, roleArn: string): EventBody => ({
  type: 'ExecutionStarted',
  executionStartedEventDetails: { input, inputDetails: whole, roleArn },
})
export const executionSucceeded = (output: string): EventBody => ({
  type: 'ExecutionSucceeded',
  executionSucceededEventDetails: { output, outputDetails: whole },
})
export const executionFailed = (failure: Failure): EventBody => ({
  type: 'ExecutionFailed',
  executionFailedEventDetails: stated(failure),
})
export const executionTimedOut = (failure: Failure): EventBody => ({
  type: 'ExecutionTimedOut',
  executionTimedOutEventDetails: stated(failure),
})
export const executionAborted = (failure: Failure): EventBody => ({
  type: 'ExecutionAborted',
  executionAbortedEventDetails: stated(failure),
})

export const stateEntered = (stateType: string, name: string, input: string): EventBody => ({
  type: `${stateType}StateEntered`,
  stateEnteredEventDetails: { name, input, inputDetails: whole },
})
export const stateExited = (stateType: string, name: string, output: string): EventBody => ({
  type: `${stateType}StateExited`,
  stateExitedEventDetails: { name, output, outputDetails: whole },
})

export const taskScheduled = (
  resource: TaskResource,
  task: { region: string; parameters: string; timeoutInSeconds?: number; heartbeatInSeconds?: number },
): EventBody => ({ type: 'TaskScheduled', taskScheduledEventDetails: { ...lambda(resource), ...task } })
export const taskStarted = (resource: TaskResource): EventBody => ({
  type: 'TaskStarted',
  taskStartedEventDetails: lambda(resource),
})
export const taskSubmitted = (resource: TaskResource, output: string): EventBody => ({
  type: 'TaskSubmitted',
  taskSubmittedEventDetails: { ...lambda(resource), output, outputDetails: whole },
})
export const taskSucceeded = (resource: TaskResource, output: string): EventBody => ({
  type: 'TaskSucceeded',
  taskSucceededEventDetails: { ...lambda(resource), output, outputDetails: whole },
})
export const taskFailed = (resource: TaskResource, failure: Failure): EventBody => ({
  type: 'TaskFailed',
  taskFailedEventDetails: { ...lambda(resource), ...stated(failure) },
})
export const taskTimedOut = (resource: TaskResource, failure: Failure): EventBody => ({
  type: 'TaskTimedOut',
  taskTimedOutEventDetails: { ...lambda(resource), ...stated(failure) },
})

/** The event without inputs, outputs and parameters, as `includeExecutionData: false` asks. */
export function withoutData(event: HistoryEvent): HistoryEvent {
  return Object.assign(
    { ...event },
    Object.fromEntries(
      Object.entries(event).map(([key, value]) => [
        key,
        typeof value === 'object' && value !== null
          ? Object.fromEntries(Object.entries(value).filter(([field]) => !dataFields.has(field)))
          : value,
      ]),
    ),
  )
}

const dataFields = new Set(['input', 'inputDetails', 'output', 'outputDetails', 'parameters'])
