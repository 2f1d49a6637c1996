import { randomUUID } from 'node:crypto'
import { executionArn, type Place, roleArn, stateMachineArn } from './arns.ts'
import type { Deadlines } from './deadlines.ts'
import type { PreparedMachine } from './definition-preparation.ts'
import { type EndStatus, Execution, type Invoke } from './execution.ts'
import { ExecutionContext } from './execution-context.ts'
import type { ExecutionStore, ExecutionSummary } from './execution-store.ts'
import { History } from './history.ts'
import { executionStarted, type Failure, type HistoryEvent } from './history-events.ts'
import { exceedsPayload, limits } from './limits.ts'
import { ServiceError } from './service-error.ts'
import type { TaskAttempt } from './task-attempt.ts'
import type { Tokens } from './tokens.ts'

/** What every execution of this endpoint shares. */
export interface ExecutionServices {
  place: Place
  machines: Map<string, PreparedMachine>
  store: ExecutionStore
  tokens: Tokens
  deadlines: Deadlines
  timeoutTemplate: Error
  invoke: Invoke
}

/** The executions of all machines: those that run, in memory, and those that have ended, on disk. */
export class Executions {
  readonly #services: ExecutionServices
  readonly #live = new Map<ExecutionSummary, Execution | Promise<Execution>>()
  readonly #inputs = new Map<ExecutionSummary, string>()
  readonly #ending = new Set<Promise<void>>()

  constructor(services: ExecutionServices) {
    this.#services = services
  }

  /**
   * Starts a machine. A repeat with the same name and input answers with the running execution; otherwise a known name
   * is `ExecutionAlreadyExists`. The start is on disk when this resolves.
   */
  async start(machine: string, name: string | undefined, input: string): Promise<ExecutionSummary> {
    const prepared = this.#services.machines.get(machine)
    const { place, store } = this.#services
    if (!prepared) {
      const arn = stateMachineArn(place, machine)
      throw new ServiceError('StateMachineDoesNotExist', `State Machine Does Not Exist: '${arn}'`)
    }
    const chosen = name ?? randomUUID()
    requireName(chosen)
    requireInput(input)
    const known = store.get(machine, chosen)
    if (known) {
      if (known.status !== 'RUNNING' || this.#inputs.get(known) !== input) {
        const arn = executionArn(place, machine, chosen)
        throw new ServiceError('ExecutionAlreadyExists', `Execution Already Exists: '${arn}'`)
      }
      await this.#live.get(known)
      return known
    }
    const summary = store.reserve(machine, chosen, Date.now())
    const starting = this.#begin(summary, prepared, input)
    this.#live.set(summary, starting)
    this.#inputs.set(summary, input)
    try {
      await starting
    } catch (error) {
      this.#live.delete(summary)
      this.#inputs.delete(summary)
      store.release(summary)
      throw error
    }
    return summary
  }

  /** The execution's events so far, from memory while it runs. */
  async history(summary: ExecutionSummary): Promise<readonly HistoryEvent[]> {
    const live = await this.#live.get(summary)
    return live ? live.history.events : this.#services.store.readHistory(summary)
  }

  /** Ends a running execution as ABORTED; one that has ended stays as it is. */
  async stop(summary: ExecutionSummary, failure: Failure): Promise<void> {
    const live = await this.#live.get(summary)
    live?.abort(failure)
  }

  /**
   * The attempt that waits for a token. `InvalidToken` when it was not given out here, `TaskDoesNotExist` when its
   * execution is unknown, `TaskTimedOut` when the task is over, however it ended.
   */
  attemptOf(token: string): TaskAttempt {
    const { machine, name } = this.#services.tokens.ownerOf(token)
    const summary = this.#services.store.get(machine, name)
    if (!summary)
      throw new ServiceError('TaskDoesNotExist', "Task Does Not Exist: 'Provided task does not exist'")
    const live = this.#live.get(summary)
    const attempt = live instanceof Execution ? live.attemptOf(token) : undefined
    if (!attempt)
      throw new ServiceError('TaskTimedOut', "Task Timed Out: 'Provided task does not exist anymore'")
    return attempt
  }

  /** Leaves what runs as a killed process would, and waits for everything recorded to be on disk. */
  async close(): Promise<void> {
    const all = await Promise.allSettled(this.#live.values())
    for (const live of all) {
      if (live.status !== 'fulfilled') continue
      live.value.abandon()
      await live.value.history.flushed()
    }
    await Promise.allSettled(this.#ending)
    await this.#services.store.flushed()
  }

  async #begin(summary: ExecutionSummary, machine: PreparedMachine, input: string): Promise<Execution> {
    const { place, store, tokens, deadlines, timeoutTemplate, invoke } = this.#services
    const file = await store.newHistoryFile(summary)
    const { name } = summary
    const context = new ExecutionContext(
      { arn: executionArn(place, summary.machine, name), name, roleArn: roleArn(place) },
      { arn: stateMachineArn(place, summary.machine), name: summary.machine },
      () => tokens.mint(summary),
    )
    const execution = new Execution(
      machine,
      context,
      {
        region: place.region,
        deadlines,
        timeoutTemplate,
        invoke,
        ended: (status) => this.#ended(summary, status),
      },
      (onFull) => new History(file, onFull),
    )
    execution.history.append(executionStarted(input, roleArn(place)))
    await execution.history.flushed()
    await store.recordStart(summary)
    this.#live.set(summary, execution)
    execution.run(input)
    return execution
  }

  #ended(summary: ExecutionSummary, status: EndStatus): void {
    summary.status = status
    summary.stopDate = Date.now()
    this.#inputs.delete(summary)
    const ending = this.#keepEnd(summary)
    this.#ending.add(ending)
    ending.finally(() => this.#ending.delete(ending)).catch(() => {})
  }

  async #keepEnd(summary: ExecutionSummary): Promise<void> {
    const live = await this.#live.get(summary)
    await live?.history.flushed()
    this.#live.delete(summary)
    await this.#services.store.recordEnd(summary)
  }
}

function requireName(name: string): void {
  const valid = name.length >= 1 && name.length <= limits.nameCharacters && !forbiddenInName.test(name)
  if (!valid) throw new ServiceError('InvalidName', `Invalid Name: '${name}'`)
}

const forbiddenInName = /[\s<>{}[\]?*"#%\\^|~`$&,;:/\p{Cc}\p{Cs}\ufffe\uffff]/u

function requireInput(input: string): void {
  if (exceedsPayload(input)) {
    throw new ServiceError(
      'InvalidExecutionInput',
      `Invalid State Machine Execution Input: 'over ${limits.payloadBytes} bytes'`,
    )
  }
  if (!isJson(input)) {
    throw new ServiceError('InvalidExecutionInput', "Invalid State Machine Execution Input: 'not valid JSON'")
  }
}

/** Whether a text is JSON. */
export function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
