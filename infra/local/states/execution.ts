import { z } from 'zod'
import type { Deadline, Deadlines } from './deadlines.ts'
import type { PreparedMachine, TaskSettings } from './definition-preparation.ts'
import { secondsOf, waitSeconds } from './durations.ts'
import type { ExecutionContext } from './execution-context.ts'
import { type History, historyLimitFailure } from './history.ts'
import * as event from './history-events.ts'
import { type InterpreterEvent, interpret, type Json, json } from './interpreter.ts'
import { exceedsPayload, longestWaitSeconds } from './limits.ts'
import type { Parking } from './parked-execution.ts'
import { type Retrier, remaining } from './retriers.ts'
import { type AttemptSettings, dataLimit, nextBeat, TaskAttempt } from './task-attempt.ts'
import { executionOver, TaskError } from './task-errors.ts'

export type EndStatus = 'SUCCEEDED' | 'FAILED' | 'TIMED_OUT' | 'ABORTED'

/** Calls the function that a task names; resolves to its JSON answer, rejects as it fails. */
export type Invoke = (functionName: string, payload: unknown) => Promise<unknown>

/** What an execution needs from its surroundings. */
export interface ExecutionSurroundings {
  region: string
  deadlines: Deadlines
  timeoutTemplate: Error
  invoke: Invoke
  /** Told when nothing goes on but that a token's answer is waited for. */
  waits(): void
  ended(status: EndStatus): void
}

/** One run of a machine: the interpreter decides what comes next, this keeps tasks, time and history. */
export class Execution {
  readonly history: History
  readonly #machine: PreparedMachine
  readonly #context: ExecutionContext
  readonly #around: ExecutionSurroundings
  #attempt: TaskAttempt | undefined
  /** An attempt that began before this object was made; its task has yet to be told so. */
  #continued: TaskAttempt | undefined
  #attemptMayStart: PromiseWithResolvers<Json> | undefined
  /** Those of the current state, and how often each was used. */
  #retriers: readonly Retrier[] = []
  #retries: number[] = []
  #endsAt: number | undefined
  #deadline: Deadline | undefined
  #stopInterpreter = () => {}
  #currentState = ''
  #taskFailure: string | undefined
  #over = false

  constructor(
    machine: PreparedMachine,
    context: ExecutionContext,
    around: ExecutionSurroundings,
    newHistory: (onFull: () => void) => History,
  ) {
    this.#machine = machine
    this.#context = context
    this.#around = around
    this.history = newHistory(() => this.#fail(historyLimitFailure))
  }

  start(input: Json): void {
    if (this.#over) return
    const { definition, timeoutSeconds } = this.#machine
    if (timeoutSeconds !== undefined) this.#endAt(Date.now() + timeoutSeconds * 1_000)
    this.#run(definition.StartAt, input)
  }

  /** Waits on where `park` left it, in the state that it was in and with that state's input. */
  resume({ state, attempt, retries, endsAt }: Parking, stateInput: Json): void {
    const { name } = state
    this.#context.return(state)
    this.#currentState = name
    this.#retries = [...retries]
    this.#retriers = remaining(this.#machine.tasks.get(name)?.retriers ?? [], retries)
    this.#attempt = this.#attemptWith(attempt)
    this.#continued = this.#attempt
    if (endsAt !== undefined) this.#endAt(endsAt)
    const definition = this.#machine.states.get(name)
    this.#run(
      name,
      stateInput,
      this.#retriers.length > 0 ? { ...definition, Retry: this.#retriers } : definition,
    )
  }

  /**
   * Stops working on it and records nothing, as `abandon` does, when all that it does is to wait for a token's answer;
   * what it goes on from, or `undefined` when it does anything else.
   */
  park(): Parking | undefined {
    const attempt = this.#over ? undefined : this.#attempt?.waiting
    if (!attempt) return undefined
    this.abandon()
    return {
      state: this.#context.state,
      attempt,
      retries: this.#retries,
      endsAt: this.#endsAt,
      events: this.history.events.length,
    }
  }

  /** Ends it as ABORTED. */
  abort(failure: event.Failure): void {
    this.#end('ABORTED', event.executionAborted(failure))
  }

  /** Stops working on it and records nothing: its history ends here, as if the process had been killed. */
  abandon(): void {
    this.#over = true
    this.#release()
  }

  /** The attempt that waits for this token, while it waits. */
  attemptOf(token: string): TaskAttempt | undefined {
    return this.#attempt?.holds(token) ? this.#attempt : undefined
  }

  #endAt(time: number): void {
    this.#endsAt = time
    this.#deadline = this.#around.deadlines.at(time, () =>
      this.#end('TIMED_OUT', event.executionTimedOut({ error: 'States.Timeout' })),
    )
  }

  /** `entered` is the state it starts in when that was entered before. */
  #run(startAt: string, input: Json, entered?: object): void {
    let first = entered
    const { events, stop } = interpret({
      machine: this.#machine,
      startAt,
      input,
      context: this.#context.asObject(),
      enter: (name) => {
        const state = first ?? this.#enter(name)
        first = undefined
        return state
      },
      perform: (settings, payload) => this.#perform(settings, payload),
    })
    this.#stopInterpreter = stop
    void this.#follow(events, entered !== undefined)
  }

  #enter(name: string): object | undefined {
    const state = this.#machine.states.get(name)
    if (state) this.#context.enter(name)
    return state
  }

  async #follow(events: AsyncGenerator<InterpreterEvent>, entered: boolean): Promise<void> {
    let isRecorded = entered
    try {
      for await (const occurred of events) {
        if (this.#over) return
        if (isRecorded && occurred.type === 'StateEntered') isRecorded = false
        else this.#record(occurred)
      }
    } catch (error) {
      this.#fail({ error: 'States.Runtime', cause: error instanceof Error ? error.message : String(error) })
    }
  }

  #record(occurred: InterpreterEvent): void {
    switch (occurred.type) {
      case 'StateEntered': {
        const { type, name, input } = occurred.state
        this.#currentState = name
        this.#taskFailure = undefined
        this.#retriers = this.#machine.tasks.get(name)?.retriers ?? []
        this.#retries = []
        this.history.append(event.stateEntered(type, name, JSON.stringify(input)))
        const wait = this.#machine.waits.get(name)
        if (wait && waitSeconds(wait, input) > longestWaitSeconds) this.#fail(waitTooLong)
        // The interpreter may be further on, at a task behind the state that is told of here.
        if (name === this.#context.state.name) this.#attemptMayStart?.resolve(input)
        return
      }
      case 'StateFailed':
        this.#attempt?.giveUp()
        return
      case 'StateRetried':
        this.#countRetry(occurred.retry.retrier)
        this.#attemptMayStart?.resolve(occurred.state.input)
        return
      case 'StateExited': {
        const { type, name, output } = occurred.state
        const text = JSON.stringify(output)
        // What a merged result makes too large fails where no Catch applies.
        if (exceedsPayload(text)) this.#fail(dataLimit)
        else this.history.append(event.stateExited(type, name, text))
        return
      }
      case 'ExecutionSucceeded':
        this.#end('SUCCEEDED', event.executionSucceeded(JSON.stringify(occurred.output)))
        return
      case 'ExecutionFailed':
        this.#fail(this.#failureOf(occurred.Error, occurred.Cause))
    }
  }

  #countRetry(retrier: Retrier): void {
    const used = this.#retriers.indexOf(retrier)
    this.#retries = this.#retriers.map((_, index) => (this.#retries[index] ?? 0) + (index === used ? 1 : 0))
  }

  #failureOf(error: string, cause: unknown): event.Failure {
    const text = typeof cause === 'string' ? cause : JSON.stringify(cause)
    if (this.#machine.namelessFailures.has(this.#currentState)) return { cause: text }
    const ownError = error !== this.#taskFailure && interpreterFaults.has(error)
    return ownError
      ? { error: 'States.Runtime', cause: `${error}: ${text}` }
      : { error, ...(text === '' ? {} : { cause: text }) }
  }

  // Awaits before anything else: an error thrown in the handler's own turn would escape the interpreter.
  async #perform(settings: TaskSettings, payload: Json): Promise<Json> {
    const continued = this.#continued
    if (continued) {
      this.#continued = undefined
      this.#context.continueAttempt()
      return this.#outcomeOf(continued)
    }
    const token = this.#context.beginAttempt()
    if (this.#over) throw executionOver()
    this.#attemptMayStart = Promise.withResolvers<Json>()
    const stateInput = await this.#attemptMayStart.promise
    this.#attemptMayStart = undefined

    const parameters = JSON.stringify(payload)
    const attempt = this.#begin(settings, token, stateInput, parameters)
    this.#attempt = attempt
    void this.#invoke(attempt, settings, JSON.parse(parameters))
    return this.#outcomeOf(attempt)
  }

  #begin(settings: TaskSettings, token: string, stateInput: Json, parameters: string): TaskAttempt {
    const { resource, handlesDataLimit } = settings
    if (exceedsPayload(parameters)) throw new TaskError(dataLimit, handlesDataLimit)
    const timeoutSeconds = secondsOf(settings.timeout, stateInput)
    const heartbeatSeconds = secondsOf(settings.heartbeat, stateInput)
    this.#append(
      event.taskScheduled(resource, {
        region: this.#around.region,
        parameters,
        ...(timeoutSeconds === undefined ? {} : { timeoutInSeconds: timeoutSeconds }),
        ...(heartbeatSeconds === undefined ? {} : { heartbeatInSeconds: heartbeatSeconds }),
      }),
    )
    this.#append(event.taskStarted(resource))
    if (this.#over) throw executionOver()
    return this.#attemptWith({
      resource,
      token: resource === 'invoke.waitForTaskToken' ? token : undefined,
      timeoutAt: timeoutSeconds === undefined ? undefined : Date.now() + timeoutSeconds * 1_000,
      heartbeatAt: nextBeat({ heartbeatSeconds }),
      heartbeatSeconds,
      handlesDataLimit,
    })
  }

  #attemptWith(settings: AttemptSettings): TaskAttempt {
    const { deadlines, timeoutTemplate } = this.#around
    return new TaskAttempt(settings, { deadlines, timeoutTemplate, record: (body) => this.#append(body) })
  }

  async #outcomeOf(attempt: TaskAttempt): Promise<Json> {
    try {
      return json.parse(JSON.parse(await attempt.outcome()))
    } catch (error) {
      this.#taskFailure = error instanceof Error ? error.name : undefined
      throw error
    }
  }

  async #invoke(
    attempt: TaskAttempt,
    { resource, functionName }: TaskSettings,
    parameters: unknown,
  ): Promise<void> {
    try {
      const { Payload } = invocation.parse(parameters)
      const answer = await this.#around.invoke(functionName, Payload)
      const output = JSON.stringify({ ExecutedVersion: '$LATEST', Payload: answer ?? null, StatusCode: 200 })
      if (resource === 'invoke') attempt.succeed(output)
      else attempt.submit(output)
      if (attempt.waiting) this.#around.waits()
    } catch (error) {
      attempt.fail(failureOfFunction(error))
    }
  }

  #append(body: event.EventBody): void {
    if (!this.#over) this.history.append(body)
  }

  #fail(failure: event.Failure): void {
    this.#end('FAILED', event.executionFailed(failure))
  }

  #end(status: EndStatus, body: event.EventBody): void {
    if (this.#over) return
    this.#over = true
    this.history.close(body)
    this.#release()
    this.#around.ended(status)
  }

  #release(): void {
    this.#deadline?.cancel()
    this.#attempt?.abandon()
    this.#attemptMayStart?.reject(executionOver())
    this.#stopInterpreter()
  }
}

const waitTooLong: event.Failure = {
  error: 'States.Runtime',
  cause: `A wait of more than ${longestWaitSeconds} seconds is not run here`,
}

const invocation = z.object({ Payload: z.unknown() })

/** Errors of the interpreter itself, told apart from a function's errors of the same name. */
const interpreterFaults = new Set([
  'Error',
  'TypeError',
  'SyntaxError',
  'RangeError',
  'ReferenceError',
  'RuntimeError',
])

function failureOfFunction(error: unknown): event.Failure {
  const errorType = error instanceof Error ? error.name : 'Error'
  const errorMessage = error instanceof Error ? error.message : String(error)
  return { error: errorType, cause: JSON.stringify({ errorType, errorMessage }) }
}
