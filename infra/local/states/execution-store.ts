import { createHash } from 'node:crypto'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { AppendFile } from './append-file.ts'
import type { EndStatus } from './execution.ts'
import { closeInterrupted } from './history.ts'
import { executionAborted, type HistoryEvent, historyEventSchema } from './history-events.ts'
import { readLines, recoverLines } from './lines-file.ts'

/** What is known of an execution without its history; times in milliseconds since the epoch. */
export interface ExecutionSummary {
  machine: string
  name: string
  startDate: number
  status: 'RUNNING' | EndStatus
  stopDate?: number
}

const startedLine = z.object({ machine: z.string(), name: z.string(), startDate: z.number() })
const endedLine = z.object({
  machine: z.string(),
  name: z.string(),
  stopDate: z.number(),
  status: z.enum(['SUCCEEDED', 'FAILED', 'TIMED_OUT', 'ABORTED']),
})
const indexLine = z.union([endedLine, startedLine])

/**
 * Executions on disk: one index of starts and ends, one file of events an execution. The index alone is read at start.
 * A start is in the index when its history holds its first event; an end when its history holds its last.
 */
export class ExecutionStore {
  readonly #directory: string
  readonly #index: AppendFile
  /** By machine, in the order they were started. */
  readonly #summaries = new Map<string, Map<string, ExecutionSummary>>()

  private constructor(directory: string) {
    this.#directory = directory
    this.#index = new AppendFile(join(directory, 'executions.jsonl'))
  }

  /** Opens the folder (made when missing); what ran when its last process ended is ABORTED from now on. */
  static async open(directory: string): Promise<ExecutionStore> {
    await mkdir(directory, { recursive: true })
    const store = new ExecutionStore(directory)
    for (const line of await recoverLines(store.#index.path)) store.#load(line)
    await store.#closeInterrupted()
    return store
  }

  get(machine: string, name: string): ExecutionSummary | undefined {
    return this.#summaries.get(machine)?.get(name)
  }

  /** A machine's executions, oldest first. */
  list(machine: string): ExecutionSummary[] {
    return [...(this.#summaries.get(machine)?.values() ?? [])]
  }

  /** Takes the name at once; `recordStart` makes it last. */
  reserve(machine: string, name: string, startDate: number): ExecutionSummary {
    const summary: ExecutionSummary = { machine, name, startDate, status: 'RUNNING' }
    this.#put(summary)
    return summary
  }

  /** Gives up a name whose start could not be recorded. */
  release({ machine, name }: ExecutionSummary): void {
    this.#summaries.get(machine)?.delete(name)
  }

  /** An empty file for the execution's events. */
  async newHistoryFile({ machine, name }: ExecutionSummary): Promise<AppendFile> {
    const path = this.#historyPath(machine, name)
    await mkdir(join(path, '..'), { recursive: true })
    await rm(path, { force: true })
    return new AppendFile(path)
  }

  /** The file of an execution that has one, to append to. */
  historyFile({ machine, name }: ExecutionSummary): AppendFile {
    return new AppendFile(this.#historyPath(machine, name))
  }

  async recordStart({ machine, name, startDate }: ExecutionSummary): Promise<void> {
    this.#index.append(JSON.stringify({ machine, name, startDate }))
    await this.#index.flushed()
  }

  /** To be called once the execution's last event is on disk. */
  async recordEnd({ machine, name, stopDate, status }: ExecutionSummary): Promise<void> {
    this.#index.append(JSON.stringify({ machine, name, stopDate, status }))
    await this.#index.flushed()
  }

  async readHistory({ machine, name }: ExecutionSummary): Promise<HistoryEvent[]> {
    return eventsOf(await readLines(this.#historyPath(machine, name)))
  }

  flushed(): Promise<void> {
    return this.#index.flushed()
  }

  #load(line: unknown): void {
    const { data } = indexLine.safeParse(line)
    if (!data) return
    if ('startDate' in data) {
      this.#put({ ...data, status: 'RUNNING' })
      return
    }
    const summary = this.get(data.machine, data.name)
    if (summary) Object.assign(summary, { status: data.status, stopDate: data.stopDate })
  }

  #put(summary: ExecutionSummary): void {
    const named = this.#summaries.get(summary.machine) ?? new Map<string, ExecutionSummary>()
    this.#summaries.set(summary.machine, named)
    named.set(summary.name, summary)
  }

  async #closeInterrupted(): Promise<void> {
    const running = [...this.#summaries.values()]
      .flatMap((named) => [...named.values()])
      .filter((summary) => summary.status === 'RUNNING')
    const mend = async (summary: ExecutionSummary) => {
      const path = this.#historyPath(summary.machine, summary.name)
      const events = eventsOf(await recoverLines(path))
      const last = events.at(-1)
      const status = endingTypes.get(last?.type ?? '')
      if (last && status) {
        Object.assign(summary, { status, stopDate: last.timestamp * 1_000 })
      } else {
        const file = new AppendFile(path)
        closeInterrupted(file, events, executionAborted(restarted))
        await file.flushed()
        Object.assign(summary, { status: 'ABORTED', stopDate: Date.now() })
      }
      const { machine, name, stopDate } = summary
      this.#index.append(JSON.stringify({ machine, name, stopDate, status: summary.status }))
    }
    for (let from = 0; from < running.length; from += mendedAtOnce) {
      await Promise.all(running.slice(from, from + mendedAtOnce).map(mend))
    }
    await this.#index.flushed()
  }

  #historyPath(machine: string, name: string): string {
    return join(this.#directory, 'histories', fileName(machine), `${fileName(name)}.jsonl`)
  }
}

const mendedAtOnce = 64

const restarted = {
  error: 'Gatehouse.Restarted',
  cause: 'The process that ran this execution ended before the execution did.',
}

const endingTypes = new Map<string, EndStatus>([
  ['ExecutionSucceeded', 'SUCCEEDED'],
  ['ExecutionFailed', 'FAILED'],
  ['ExecutionTimedOut', 'TIMED_OUT'],
  ['ExecutionAborted', 'ABORTED'],
])

const eventsOf = (lines: unknown[]): HistoryEvent[] =>
  lines.flatMap((line) => historyEventSchema.safeParse(line).data ?? [])

// Any name is a file's name: no path, no letter case that a file system folds, no name that is too long for one.
const fileName = (name: string) =>
  /^[a-z0-9_-][a-z0-9._-]*$/.test(name) ? name : `=${createHash('sha256').update(name).digest('hex')}`
