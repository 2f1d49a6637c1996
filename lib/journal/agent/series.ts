/** How many of the first `count` members of an ascending list are at most `limit`. */
export const countUpTo = (
  sequences: ArrayLike<number>,
  limit: number,
  count: number = sequences.length,
): number => {
  const last = sequences[count - 1]
  if (last === undefined || last <= limit) return count
  let low = 0
  let high = count
  while (low < high) {
    const middle = (low + high) >> 1
    if ((sequences[middle] ?? 0) <= limit) low = middle + 1
    else high = middle
  }
  return low
}

/**
 * Values with the sequences at which they were written, ascending. It only grows, and is always read as of a sequence:
 * what a reader found once it will find for ever, whatever is written after it.
 */
export class Series<Value> {
  readonly #sequences: number[] = []
  readonly #values: Value[] = []

  push(sequence: number, value: Value): void {
    this.#sequences.push(sequence)
    this.#values.push(value)
  }

  /** The last value that was written at or before a sequence. */
  at(sequence: number): Value | undefined {
    return this.#values[countUpTo(this.#sequences, sequence) - 1]
  }

  /** What was written after `after`, up to and with `upTo`, in order. */
  *between(after: number, upTo: number): Generator<[sequence: number, value: Value]> {
    const end = countUpTo(this.#sequences, upTo)
    for (let place = countUpTo(this.#sequences, after); place < end; place++) {
      const sequence = this.#sequences[place]
      const value = this.#values[place]
      if (sequence !== undefined && value !== undefined) yield [sequence, value]
    }
  }
}

type Version<Value> = {
  readonly sequence: number
  readonly value: Value
  readonly previous: Version<Value> | undefined
}

const asOf = <Value>(newest: Version<Value> | undefined, at: number): Version<Value> | undefined => {
  let version = newest
  while (version && version.sequence > at) version = version.previous
  return version
}

/**
 * A map that keeps every version of a value with the sequence at which it was set. Meant for values that change a few
 * times in their life: each version links to the one before it.
 */
export class Versions<Value> {
  readonly #newest = new Map<string, Version<Value>>()

  set(key: string, sequence: number, value: Value): void {
    this.#newest.set(key, { sequence, value, previous: this.#newest.get(key) })
  }

  get(key: string, at: number): Value | undefined {
    return asOf(this.#newest.get(key), at)?.value
  }

  /** The value of every key that had one at a sequence, in the order in which the keys came. */
  *at(sequence: number): Generator<[key: string, value: Value]> {
    for (const [key, newest] of this.#newest) {
      const version = asOf(newest, sequence)
      if (version) yield [key, version.value]
    }
  }

  /** Every version up to a sequence, oldest first. */
  *upTo(sequence: number): Generator<[key: string, versions: [number, Value][]]> {
    for (const [key, newest] of this.#newest) {
      const versions: [number, Value][] = []
      for (let version = asOf(newest, sequence); version; version = version.previous)
        versions.push([version.sequence, version.value])
      if (versions.length > 0) yield [key, versions.reverse()]
    }
  }
}
