import { StateMachine } from 'aws-local-stepfunctions'
import type { Failure } from './history-events.ts'

/** A failed attempt as the interpreter's Retry and Catch see it. */
export class TaskError extends Error {
  /** Read by the interpreter: an error that is neither ends the execution whatever the state catches. */
  readonly isRetryable: boolean
  readonly isCatchable: boolean

  constructor({ error = 'States.TaskFailed', cause = '' }: Failure, handled = true) {
    super(cause)
    this.name = error
    this.isRetryable = handled
    this.isCatchable = handled
  }
}

/** For an attempt whose execution is over: nothing retries or catches it. */
export const executionOver = () =>
  new TaskError({ error: 'States.Runtime', cause: 'The execution is over.' }, false)

/**
 * An attempt that took too long, made so that the interpreter's wildcard `States.TaskFailed` does not match it, as on
 * AWS. The interpreter tells such errors by a class that it doesn't export.
 */
export function timeoutError(name: 'States.Timeout' | 'States.HeartbeatTimeout', template: Error): Error {
  const error: Error = Object.create(template, { name: { value: name }, message: { value: '' } })
  return error
}

/** The interpreter's own time-out error. */
export async function timeoutTemplate(): Promise<Error> {
  const never = Promise.withResolvers<null>()
  const machine = new StateMachine(
    {
      StartAt: 'Task',
      States: { Task: { Type: 'Task', Resource: 'none', TimeoutSeconds: 0.001, End: true } },
    },
    { validationOptions: { noValidate: true } },
  )
  try {
    await machine.run({}, { overrides: { taskResourceLocalHandlers: { Task: () => never.promise } } }).result
  } catch (error) {
    if (error instanceof Error && error.cause instanceof Error) return error.cause
  }
  throw new Error('the interpreter no longer reports a time-out by an error of its own')
}
