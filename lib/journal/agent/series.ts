/** The number of members of an ascending list that are at most `limit`. */
const countUpTo = (sequences: readonly number[], limit: number): number => {
  const last = sequences.at(-1)
  if (last === undefined || last <= limit) return sequences.length
  let low = 0
  let high = sequences.length
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

/** A map of which every value's versions are kept, each with the sequence at which it was set. */
export class Versions<Value> {
  readonly #series = new Map<string, Series<Value>>()

  set(key: string, sequence: number, value: Value): void {
    const series = this.#series.get(key) ?? new Series<Value>()
    series.push(sequence, value)
    this.#series.set(key, series)
  }

  get(key: string, at: number): Value | undefined {
    return this.#series.get(key)?.at(at)
  }

  /** The value of every key that had one at a sequence, in the order in which the keys came. */
  *at(sequence: number): Generator<[key: string, value: Value]> {
    for (const [key, series] of this.#series) {
      const value = series.at(sequence)
      if (value !== undefined) yield [key, value]
    }
  }

  /** Every version up to a sequence. */
  *upTo(sequence: number): Generator<[key: string, versions: [number, Value][]]> {
    for (const [key, series] of this.#series) {
      const versions = [...series.between(-1, sequence)]
      if (versions.length > 0) yield [key, versions]
    }
  }
}
