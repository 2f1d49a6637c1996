import { randomUUID } from 'node:crypto'
import type { AppendFile } from './append-file.ts'
import { executionArn, type Place, roleArn, stateMachineArn } from './arns.ts'
import type { Deadlines } from './deadlines.ts'
import type { PreparedMachine } from './definition-preparation.ts'
import { type EndStatus, Execution, type Invoke } from './execution.ts'
import { ExecutionContext } from './execution-context.ts'
import type { ExecutionStore, ExecutionSummary } from './execution-store.ts'
import { History } from './history.ts'
import { executionStarted, type Failure, type HistoryEvent } from './history-events.ts'
import { type Json, json } from './interpreter.ts'
import { inputOf, stateInputOf } from './outcome.ts'
import { ParkedExecution } from './parked-execution.ts'
import { ServiceError } from './service-error.ts'
import { requireInput, requireName } from './start-rules.ts'
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

/**
 * The executions of all machines: those at work, in memory; those that wait for a task token, of which little is in
 * memory; those that have ended, on disk.
 */
export class Executions {
  readonly #services: ExecutionServices
  /** What runs. A promise is one that is being brought into memory. */
  readonly #held = new Map<ExecutionSummary, Execution | ParkedExecution | Promise<void>>()
  readonly #ending = new Set<Promise<void>>()
  #closed = false

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
    if (known) return this.#startAgain(known, input)
    const summary = store.reserve(machine, chosen, Date.now())
    const starting = this.#begin(summary, prepared, input)
    this.#held.set(summary, starting)
    try {
      await starting
    } catch (error) {
      this.#held.delete(summary)
      store.release(summary)
      throw error
    }
    return summary
  }

  /** The execution's events so far. */
  async history(summary: ExecutionSummary): Promise<readonly HistoryEvent[]> {
    for (;;) {
      const held = this.#held.get(summary)
      if (held instanceof Execution) return held.history.events
      if (held instanceof Promise) {
        await held
        continue
      }
      const events = await this.#services.store.readHistory(summary)
      // What went on while the file was read may not be in what was read.
      if (this.#held.get(summary) === held) return events
    }
  }

  /** Ends a running execution as ABORTED; one that has ended stays as it is. */
  stop(summary: ExecutionSummary, failure: Failure): Promise<void> {
    return this.#whenAtWork(summary, (execution) => execution?.abort(failure))
  }

  /**
   * Has the attempt that waits for a token settled by `settle`. `InvalidToken` when the token was not given out here,
   * `TaskDoesNotExist` when its execution is unknown, `TaskTimedOut` when the task is over, however it ended.
   */
  async answer(token: string, settle: (attempt: TaskAttempt) => void): Promise<void> {
    const summary = this.#ownerOf(token)
    const held = this.#held.get(summary)
    if (held instanceof ParkedExecution && !held.holds(token)) throw taskTimedOut()
    await this.#whenAtWork(summary, (execution) => {
      const attempt = execution?.attemptOf(token)
      if (!attempt) throw taskTimedOut()
      settle(attempt)
    })
  }

  /** Says that the work behind a token goes on; refuses as `answer` does. */
  async beat(token: string): Promise<void> {
    const held = this.#held.get(this.#ownerOf(token))
    if (held instanceof ParkedExecution && held.holds(token)) held.beat()
    else await this.answer(token, (attempt) => attempt.beat())
  }

  /** How many are in memory with all that they work with. */
  atWork(): number {
    return [...this.#held.values()].filter((held) => !(held instanceof ParkedExecution)).length
  }

  /** Leaves what runs as a killed process would, and waits for everything recorded to be on disk. */
  async close(): Promise<void> {
    this.#closed = true
    for (const held of this.#held.values()) if (held instanceof ParkedExecution) held.leave()
    await Promise.allSettled([...this.#held.values()])
    for (const held of this.#held.values()) {
      if (!(held instanceof Execution)) continue
      held.abandon()
      await held.history.flushed()
    }
    await Promise.allSettled(this.#ending)
    await this.#services.store.flushed()
  }

  /** An execution whose name was taken: the same one when it runs on the same input. */
  async #startAgain(known: ExecutionSummary, input: string): Promise<ExecutionSummary> {
    const isSame = known.status === 'RUNNING' && inputOf(await this.history(known)) === input
    if (isSame) return known
    const arn = executionArn(this.#services.place, known.machine, known.name)
    throw new ServiceError('ExecutionAlreadyExists', `Execution Already Exists: '${arn}'`)
  }

  #ownerOf(token: string): ExecutionSummary {
    const { machine, name } = this.#services.tokens.ownerOf(token)
    const summary = this.#services.store.get(machine, name)
    if (summary) return summary
    throw new ServiceError('TaskDoesNotExist', "Task Does Not Exist: 'Provided task does not exist'")
  }

  /**
   * Calls `act` with the execution once it is in memory and at work, in the turn in which it is found there: a turn
   * later it may be parked. `undefined` when it has ended.
   */
  async #whenAtWork(
    summary: ExecutionSummary,
    act: (execution: Execution | undefined) => void,
  ): Promise<void> {
    for (;;) {
      const held = this.#held.get(summary)
      if (held === undefined || held instanceof Execution) return act(held)
      await (held instanceof ParkedExecution ? this.#wake(summary, held) : held)
    }
  }

  async #begin(summary: ExecutionSummary, machine: PreparedMachine, input: string): Promise<void> {
    const { place, store } = this.#services
    const file = await store.newHistoryFile(summary)
    const parsed = json.parse(JSON.parse(input))
    const execution = this.#executionOf(summary, machine, parsed, { file, events: [] })
    execution.history.append(executionStarted(input, roleArn(place)))
    await execution.history.flushed()
    await store.recordStart(summary)
    this.#held.set(summary, execution)
    execution.start(parsed)
  }

  #executionOf(
    summary: ExecutionSummary,
    machine: PreparedMachine,
    input: Json,
    { file, events }: { file: AppendFile; events: HistoryEvent[] },
  ): Execution {
    const { place, tokens, deadlines, timeoutTemplate, invoke } = this.#services
    const { name, startDate } = summary
    const context = new ExecutionContext(
      {
        arn: executionArn(place, summary.machine, name),
        name,
        roleArn: roleArn(place),
        input,
        startDate,
        machine: { arn: stateMachineArn(place, summary.machine), name: summary.machine },
      },
      () => tokens.mint(summary),
    )
    const execution: Execution = new Execution(
      machine,
      context,
      {
        region: place.region,
        deadlines,
        timeoutTemplate,
        invoke,
        waits: () => {
          // One that can't be parked stays in memory, which is all that is lost.
          this.#park(summary, execution).catch(() => {})
        },
        ended: (status) => this.#ended(summary, status),
      },
      (onFull) => new History(file, events, onFull),
    )
    return execution
  }

  /** Forgets what the history on disk says as well, if the execution still waits when all of it is there. */
  async #park(summary: ExecutionSummary, execution: Execution): Promise<void> {
    while (!execution.history.isFlushed) await execution.history.flushed()
    if (this.#closed || this.#held.get(summary) !== execution) return
    const parking = execution.park()
    if (!parking) return
    const wake = () => this.#whenAtWork(summary, () => {})
    this.#held.set(summary, new ParkedExecution(parking, this.#services.deadlines, wake))
  }

  /** Brings a parked execution back, once for all who ask; stays parked when its history can't be read. */
  #wake(summary: ExecutionSummary, parked: ParkedExecution): Promise<void> {
    const waking = this.#resume(summary, parked).catch((error) => {
      this.#held.set(summary, parked)
      throw error
    })
    this.#held.set(summary, waking)
    return waking
  }

  async #resume(summary: ExecutionSummary, parked: ParkedExecution): Promise<void> {
    const { store, machines } = this.#services
    const { parking } = parked
    const events = await store.readHistory(summary)
    const machine = machines.get(summary.machine)
    const input = inputOf(events)
    const stateInput = stateInputOf(events, parking.state.name)
    if (!machine || input === undefined || stateInput === undefined || events.length !== parking.events) {
      throw new Error(`the history of ${summary.name} is not what was written`)
    }
    const file = store.historyFile(summary)
    const execution = this.#executionOf(summary, machine, json.parse(JSON.parse(input)), { file, events })
    const parsedInput = json.parse(JSON.parse(stateInput))
    parked.leave()
    this.#held.set(summary, execution)
    execution.resume(parking, parsedInput)
  }

  #ended(summary: ExecutionSummary, status: EndStatus): void {
    summary.status = status
    summary.stopDate = Date.now()
    const ending = this.#keepEnd(summary)
    this.#ending.add(ending)
    ending.finally(() => this.#ending.delete(ending)).catch(() => {})
  }

  async #keepEnd(summary: ExecutionSummary): Promise<void> {
    const held = this.#held.get(summary)
    if (held instanceof Execution) await held.history.flushed()
    this.#held.delete(summary)
    await this.#services.store.recordEnd(summary)
  }
}

const taskTimedOut = () =>
  new ServiceError('TaskTimedOut', "Task Timed Out: 'Provided task does not exist anymore'")
