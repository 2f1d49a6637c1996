import { StateMachine } from 'aws-local-stepfunctions'
import { z } from 'zod'
import type { Deadline, Deadlines } from './deadlines.ts'
import type { PreparedMachine, TaskSettings } from './definition-preparation.ts'
import { secondsOf, waitSeconds } from './durations.ts'
import type { ExecutionContext } from './execution-context.ts'
import { type History, historyLimitFailure } from './history.ts'
import * as event from './history-events.ts'
import { exceedsPayload, longestWaitSeconds } from './limits.ts'
import { dataLimit, TaskAttempt } from './task-attempt.ts'
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
  ended(status: EndStatus): void
}

const json = z.json()
type Json = z.output<typeof json>
type InterpreterEvent =
  ReturnType<StateMachine['run']>['eventLogs'] extends AsyncGenerator<infer Event> ? Event : never

/** One run of a machine: the interpreter decides what comes next, this keeps tasks, time and history. */
export class Execution {
  readonly history: History
  readonly #machine: PreparedMachine
  readonly #context: ExecutionContext
  readonly #around: ExecutionSurroundings
  #attempt: TaskAttempt | undefined
  #attemptMayStart: PromiseWithResolvers<Json> | undefined
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

  run(input: string): void {
    if (this.#over) return
    const { definition, timeoutSeconds, tasks } = this.#machine
    if (timeoutSeconds !== undefined) {
      this.#deadline = this.#around.deadlines.at(Date.now() + timeoutSeconds * 1_000, () =>
        this.#end('TIMED_OUT', event.executionTimedOut({ error: 'States.Timeout' })),
      )
    }
    // The interpreter looks a state up at the moment it enters it, before it reads the context object for it.
    const States = new Proxy(definition.States, {
      get: (states, name) => {
        if (typeof name === 'string' && Object.hasOwn(states, name)) this.#context.enter(name)
        return Reflect.get(states, name)
      },
    })
    const interpreter = new StateMachine(
      { ...definition, States },
      { validationOptions: { noValidate: true } },
    )
    const handlers = [...tasks].map(([name, settings]) => {
      const handler = async (payload: Json) => this.#perform(settings, payload)
      return [name, handler] as const
    })
    const { abort, eventLogs, result } = interpreter.run(json.parse(JSON.parse(input)), {
      context: this.#context.asObject(),
      noThrowOnAbort: true,
      overrides: { taskResourceLocalHandlers: Object.fromEntries(handlers) },
    })
    result.catch(() => {})
    this.#stopInterpreter = abort
    void this.#follow(eventLogs)
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

  async #follow(events: AsyncGenerator<InterpreterEvent>): Promise<void> {
    try {
      for await (const occurred of events) {
        if (this.#over) return
        this.#record(occurred)
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
        this.history.append(event.stateEntered(type, name, JSON.stringify(input)))
        const wait = this.#machine.waits.get(name)
        if (wait && waitSeconds(wait, input) > longestWaitSeconds) this.#fail(waitTooLong)
        this.#attemptMayStart?.resolve(input)
        return
      }
      case 'StateFailed':
        this.#attempt?.giveUp()
        return
      case 'StateRetried':
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
    const token = this.#context.beginAttempt()
    if (this.#over) throw executionOver()
    this.#attemptMayStart = Promise.withResolvers<Json>()
    const stateInput = await this.#attemptMayStart.promise
    this.#attemptMayStart = undefined

    const parameters = JSON.stringify(payload)
    if (exceedsPayload(parameters)) throw new TaskError(dataLimit, settings.handlesDataLimit)
    const timeoutInSeconds = secondsOf(settings.timeout, stateInput)
    const heartbeatInSeconds = secondsOf(settings.heartbeat, stateInput)
    const { resource } = settings
    const { region, deadlines, timeoutTemplate } = this.#around
    this.#append(
      event.taskScheduled(resource, {
        region,
        parameters,
        ...(timeoutInSeconds === undefined ? {} : { timeoutInSeconds }),
        ...(heartbeatInSeconds === undefined ? {} : { heartbeatInSeconds }),
      }),
    )
    this.#append(event.taskStarted(resource))
    if (this.#over) throw executionOver()
    const attempt = new TaskAttempt(
      {
        resource,
        token: resource === 'invoke.waitForTaskToken' ? token : undefined,
        timeoutSeconds: timeoutInSeconds,
        heartbeatSeconds: heartbeatInSeconds,
        handlesDataLimit: settings.handlesDataLimit,
      },
      { deadlines, timeoutTemplate, record: (body) => this.#append(body) },
    )
    this.#attempt = attempt
    void this.#invoke(attempt, settings, JSON.parse(parameters))
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
      else if (!attempt.settled) this.#append(event.taskSubmitted(resource, output))
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
