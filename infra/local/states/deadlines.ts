/** A moment at which something happens, unless it is moved or cancelled before. */
export interface Deadline {
  /** Moves it to `time` (milliseconds since the epoch). */
  move(time: number): void
  cancel(): void
}

/** Any number of deadlines on one timer, which keeps no process alive. */
export class Deadlines {
  readonly #waiting = new Set<{ time: number; act: () => void }>()
  #timer: NodeJS.Timeout | undefined
  #armedFor = Number.POSITIVE_INFINITY

  /** Calls `act` once at `time` (milliseconds since the epoch), however far away that is. */
  at(time: number, act: () => void): Deadline {
    const entry = { time, act }
    this.#waiting.add(entry)
    this.#arm(time)
    return {
      move: (moved) => {
        entry.time = moved
        this.#arm(moved)
      },
      cancel: () => {
        this.#waiting.delete(entry)
        if (this.#waiting.size === 0) this.clear()
      },
    }
  }

  /** Forgets them all. */
  clear(): void {
    this.#waiting.clear()
    clearTimeout(this.#timer)
    this.#armedFor = Number.POSITIVE_INFINITY
  }

  #arm(time: number): void {
    if (time >= this.#armedFor) return
    clearTimeout(this.#timer)
    this.#armedFor = time
    const wait = Math.min(Math.max(time - Date.now(), 0), longestTimer)
    this.#timer = setTimeout(() => this.#fire(), wait).unref()
  }

  #fire(): void {
    this.#armedFor = Number.POSITIVE_INFINITY
    const now = Date.now()
    const due = []
    let next = Number.POSITIVE_INFINITY
    for (const entry of this.#waiting) {
      if (entry.time <= now) due.push(entry)
      else if (entry.time < next) next = entry.time
    }
    if (next < Number.POSITIVE_INFINITY) this.#arm(next)
    for (const entry of due) {
      // What one of them does may move or cancel another.
      if (entry.time <= now && this.#waiting.delete(entry)) entry.act()
    }
  }
}

const longestTimer = 2_147_483_647
