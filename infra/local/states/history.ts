import type { AppendFile } from './append-file.ts'
import type { EventBody, Failure, HistoryEvent } from './history-events.ts'
import { limits } from './limits.ts'

export const historyLimitFailure: Failure = {
  error: 'States.Runtime',
  cause: `The execution reached the maximum number of history events (${limits.historyEvents}).`,
}

/** The history of an execution that runs: in memory and, a moment later, in its file. */
export class History {
  readonly events: HistoryEvent[]

  readonly #file: AppendFile
  readonly #onFull: () => void

  /** `events` are those that the file holds already. */
  constructor(file: AppendFile, events: HistoryEvent[], onFull: () => void) {
    this.#file = file
    this.events = events
    this.#onFull = onFull
  }

  /** Appends an event; the one before the last that fits makes room for the execution's failure instead. */
  append(body: EventBody): void {
    if (this.events.length < limits.historyEvents - 1) this.#write(body)
    else this.#onFull()
  }

  /** Appends the event that ends the execution. */
  close(body: EventBody): void {
    this.#write(body)
  }

  /** Whether all of it is in its file. */
  get isFlushed(): boolean {
    return this.#file.isFlushed
  }

  flushed(): Promise<void> {
    return this.#file.flushed()
  }

  #write(body: EventBody): void {
    const id = this.events.length + 1
    const event = {
      timestamp: Date.now() / 1_000,
      id,
      // The first state's entry is where the tree of events begins.
      previousEventId: id === 2 ? 0 : id - 1,
      ...body,
    }
    this.events.push(event)
    this.#file.append(JSON.stringify(event))
  }
}

/** Appends to a finished file the event that was never written, as its last. */
export function closeInterrupted(file: AppendFile, events: HistoryEvent[], body: EventBody): void {
  const last = events.at(-1)?.id ?? 0
  file.append(JSON.stringify({ timestamp: Date.now() / 1_000, id: last + 1, previousEventId: last, ...body }))
}
