import type { Deadline, Deadlines } from './deadlines.ts'
import type { CurrentState } from './execution-context.ts'
import { type AttemptSettings, nextBeat } from './task-attempt.ts'

/** What an execution that waits for a task token goes on from, beside its history. */
export interface Parking {
  state: CurrentState
  attempt: AttemptSettings
  /** How often each of the state's retriers was used. */
  retries: readonly number[]
  /** When the whole execution times out, in milliseconds since the epoch. */
  endsAt: number | undefined
  /** How many events its history holds. */
  events: number
}

/**
 * All that is in memory of an execution that waits for a task token, one deadline included. `wake` is called when one
 * of its times has come, and again after a while when it rejects.
 */
export class ParkedExecution {
  readonly parking: Parking
  readonly #deadlines: Deadlines
  readonly #wake: () => Promise<void>
  #deadline: Deadline | undefined

  constructor(parking: Parking, deadlines: Deadlines, wake: () => Promise<void>) {
    this.parking = parking
    this.#deadlines = deadlines
    this.#wake = wake
    const first = firstTime(parking)
    if (first !== Number.POSITIVE_INFINITY) this.#wakeAt(first)
  }

  /** Whether this is the token that it waits for. */
  holds(token: string): boolean {
    return this.parking.attempt.token === token
  }

  /** Puts the missed-heartbeat deadline off. */
  beat(): void {
    const { attempt } = this.parking
    attempt.heartbeatAt = nextBeat(attempt)
    this.#deadline?.move(firstTime(this.parking))
  }

  /** Ends its deadline: it is kept no longer. */
  leave(): void {
    this.#deadline?.cancel()
  }

  #wakeAt(time: number): void {
    this.#deadline = this.#deadlines.at(time, () => {
      this.#wake().catch(() => this.#wakeAt(Date.now() + againMs))
    })
  }
}

const firstTime = ({ attempt, endsAt }: Parking): number =>
  Math.min(
    ...[attempt.timeoutAt, attempt.heartbeatAt, endsAt].map((time) => time ?? Number.POSITIVE_INFINITY),
  )

const againMs = 5_000
