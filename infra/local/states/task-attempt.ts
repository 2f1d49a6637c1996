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
  /** When it times out, and when it misses a heartbeat, in milliseconds since the epoch. */
  timeoutAt: number | undefined
  heartbeatAt: number | undefined
  heartbeatSeconds: number | undefined
  handlesDataLimit: boolean
}

/** When the next heartbeat of an attempt is missed that shows life now. */
export const nextBeat = ({
  heartbeatSeconds,
}: {
  heartbeatSeconds: number | undefined
}): number | undefined => (heartbeatSeconds === undefined ? undefined : Date.now() + heartbeatSeconds * 1_000)

/** One attempt at a task. It settles once: whatever comes later changes nothing. */
export class TaskAttempt {
  readonly #done = Promise.withResolvers<string>()
  readonly #settings: AttemptSettings
  readonly #around: AttemptSurroundings
  readonly #timeout: Deadline | undefined
  readonly #heartbeat: Deadline | undefined
  #submitted = false
  #settled = false

  constructor(settings: AttemptSettings, around: AttemptSurroundings) {
    this.#settings = settings
    this.#around = around
    // An attempt that is abandoned before anyone waits for it is no error of its own.
    this.#done.promise.catch(() => {})
    const { timeoutAt, heartbeatAt } = settings
    this.#timeout = this.#at(timeoutAt, () => this.#expire('States.Timeout'))
    this.#heartbeat = this.#at(heartbeatAt, () => this.#expire('States.HeartbeatTimeout'))
  }

  holds(token: string): boolean {
    return !this.#settled && this.#settings.token === token
  }

  /** What another attempt that takes its place is made from, while it does nothing but wait for its token's answer. */
  get waiting(): AttemptSettings | undefined {
    return this.#submitted && !this.#settled ? this.#settings : undefined
  }

  /** The attempt's output as JSON text; rejects with what the interpreter's Retry and Catch are to see. */
  outcome(): Promise<string> {
    return this.#done.promise
  }

  /** The function that was given the token has answered; from now on the attempt waits for the token's answer alone. */
  submit(output: string): void {
    if (this.#settled) return
    this.#submitted = true
    this.#around.record(event.taskSubmitted(this.#settings.resource, output))
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
    const next = nextBeat(this.#settings)
    if (next === undefined) return
    this.#settings.heartbeatAt = next
    this.#heartbeat?.move(next)
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

  #at(time: number | undefined, act: () => void): Deadline | undefined {
    return time === undefined ? undefined : this.#around.deadlines.at(time, act)
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
