/** The last `capacity` bytes of a stream, in memory of that size whatever the length of the stream. */
export class Ring {
  readonly #capacity: number
  #buffer: Buffer = Buffer.alloc(0)
  #position = 0
  #total = 0

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  /** Bytes that were pushed and have been overwritten since. */
  get dropped(): number {
    return Math.max(0, this.#total - this.#capacity)
  }

  push(chunk: Buffer): void {
    this.#total += chunk.length
    const kept = chunk.subarray(Math.max(0, chunk.length - this.#capacity))
    this.#grow(kept.length)
    const first = kept.copy(this.#buffer, this.#position)
    if (first < kept.length) kept.copy(this.#buffer, 0, first)
    this.#position = (this.#position + kept.length) % this.#capacity
  }

  /** A copy of what is kept, oldest byte first. */
  bytes(): Buffer {
    if (this.#total < this.#capacity) return Buffer.from(this.#buffer.subarray(0, this.#position))
    return Buffer.concat([this.#buffer.subarray(this.#position), this.#buffer.subarray(0, this.#position)])
  }

  #grow(incoming: number): void {
    const needed = Math.min(this.#capacity, this.#position + incoming)
    if (this.#buffer.length >= needed) return
    const larger = Buffer.alloc(Math.min(this.#capacity, Math.max(needed, this.#buffer.length * 2)))
    this.#buffer.copy(larger)
    this.#buffer = larger
  }
}
