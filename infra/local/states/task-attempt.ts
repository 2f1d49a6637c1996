import type { Deadline, Deadlines } from './deadlines.ts'
import * as event from './history-events.ts'
import { exceedsPayload } from './limits.ts'
import { executionOver, TaskError, timeoutError } from './task-errors.ts'

/** What an attempt needs from the execution it belongs to. */
export interface AttemptSurroundings {
  deadlines: Deadlines
  timeoutTemplate: Error
  record(body: event.EventBody): void
}

export interface AttemptSettings {
  resource: event.TaskResource
  /** Absent for a plain invocation, which nothing outside can settle. */
  token: string | undefined
  timeoutSeconds: number | undefined
  heartbeatSeconds: number | undefined
  handlesDataLimit: boolean
}

/** One attempt at a task. It settles once: whatever comes later changes nothing. */
export class TaskAttempt {
  readonly #done = Promise.withResolvers<string>()
  readonly #settings: AttemptSettings
  readonly #around: AttemptSurroundings
  readonly #timeout: Deadline | undefined
  readonly #heartbeat: Deadline | undefined
  #settled = false

  constructor(settings: AttemptSettings, around: AttemptSurroundings) {
    this.#settings = settings
    this.#around = around
    // An attempt that is abandoned before anyone waits for it is no error of its own.
    this.#done.promise.catch(() => {})
    const { timeoutSeconds, heartbeatSeconds } = settings
    this.#timeout = this.#after(timeoutSeconds, () => this.#expire('States.Timeout'))
    this.#heartbeat = this.#after(heartbeatSeconds, () => this.#expire('States.HeartbeatTimeout'))
  }

  get settled(): boolean {
    return this.#settled
  }

  holds(token: string): boolean {
    return !this.#settled && this.#settings.token === token
  }

  /** The attempt's output as JSON text; rejects with what the interpreter's Retry and Catch are to see. */
  outcome(): Promise<string> {
    return this.#done.promise
  }

  succeed(output: string): void {
    if (this.#settled) return
    if (exceedsPayload(output)) {
      this.fail(dataLimit, this.#settings.handlesDataLimit)
      return
    }
    this.#settle(event.taskSucceeded(this.#settings.resource, output))
    this.#done.resolve(output)
  }

  fail(failure: event.Failure, handled = true): void {
    if (this.#settled) return
    this.#settle(event.taskFailed(this.#settings.resource, failure))
    this.#done.reject(new TaskError(failure, handled))
  }

  /** Puts the missed-heartbeat deadline off. */
  beat(): void {
    const { heartbeatSeconds } = this.#settings
    if (heartbeatSeconds) this.#heartbeat?.move(Date.now() + heartbeatSeconds * 1_000)
  }

  /** Ends the attempt because the interpreter, whose own timer ends after 24.8 days, no longer waits for it. */
  giveUp(): void {
    this.#expire('States.Timeout')
  }

  /** Ends the attempt with its execution. */
  abandon(): void {
    if (this.#settled) return
    this.#settle()
    this.#done.reject(executionOver())
  }

  #after(seconds: number | undefined, act: () => void): Deadline | undefined {
    return seconds === undefined ? undefined : this.#around.deadlines.at(Date.now() + seconds * 1_000, act)
  }

  #expire(error: 'States.Timeout' | 'States.HeartbeatTimeout'): void {
    if (this.#settled) return
    this.#settle(event.taskTimedOut(this.#settings.resource, { error }))
    this.#done.reject(timeoutError(error, this.#around.timeoutTemplate))
  }

  #settle(body?: event.EventBody): void {
    this.#settled = true
    this.#timeout?.cancel()
    this.#heartbeat?.cancel()
    if (body) this.#around.record(body)
  }
}

export const dataLimit: event.Failure = {
  error: 'States.DataLimitExceeded',
  cause: 'The state returned a result with a size exceeding the maximum number of bytes service limit.',
}
