import { closeSync, ftruncateSync, openSync, writeSync } from 'node:fs'
import { limits } from '../limits.ts'
import { headLength, tailStart } from '../text/shorten.ts'
import { printable } from '../text/utf8.ts'
import { Ring } from './ring.ts'

/** How much beyond a cut is kept until the end, to see whether a character goes on there. */
const beyond = 1024

/** What is left of a stream after its middle was left out; both parts end on whole characters. */
type Edges = { head: Buffer; tail: Buffer; omitted: number }

/**
 * Keeps the first `headMax` and the last `tailMax` bytes of a stream. The tail begins no earlier than the
 * head ends.
 */
class HeadAndTail {
  readonly #headMax: number
  readonly #tailMax: number
  readonly #ring: Ring
  #heads: Buffer[] = []
  #headBytes = 0

  constructor(headMax: number, tailMax: number) {
    this.#headMax = headMax
    this.#tailMax = tailMax
    this.#ring = new Ring(tailMax + beyond)
  }

  push(chunk: Buffer): void {
    const part = chunk.subarray(0, this.#headMax + beyond - this.#headBytes)
    if (part.length > 0) {
      // A copy: the chunk may be a slice of a pool that the stream reuses or that would be kept alive whole.
      this.#heads.push(Buffer.from(part))
      this.#headBytes += part.length
    }
    if (part.length < chunk.length) this.#ring.push(chunk.subarray(part.length))
  }

  edges(): Edges {
    const first = Buffer.concat(this.#heads)
    const last = this.#ring.bytes()
    const head = headLength(first, this.#headMax)
    if (this.#ring.dropped > 0) {
      const tail = tailStart(last, this.#tailMax)
      const omitted = first.length - head + this.#ring.dropped + tail
      return { head: first.subarray(0, head), tail: last.subarray(tail), omitted }
    }
    const whole = Buffer.concat([first, last])
    const fits = whole.length <= this.#headMax + this.#tailMax
    const tail = fits ? head : Math.max(head, tailStart(whole, this.#tailMax))
    return { head: whole.subarray(0, head), tail: whole.subarray(tail), omitted: tail - head }
  }
}

/** What remains of a finished process's combined output. */
export type KeptOutput = {
  head: string
  tail: string
  bytes: number
  /** Bytes that the file lacks; 0 when the file holds everything. */
  omittedBytes: number
  /** Why the file is not complete although nothing was left out on purpose, such as a full disk. */
  error: string | null
}

/**
 * Takes a process's output as it comes: the first half of `limits.artifact` goes straight to the file, the
 * last half waits in a ring until the end. Memory is bounded by that half, whatever the process prints. The
 * constructor throws when the file cannot be created.
 */
export class OutputCollector {
  readonly #file: number
  readonly #text = new HeadAndTail(limits.outputHead, limits.outputTail)
  readonly #fileHeadMax = limits.artifact / 2 + beyond
  readonly #ring = new Ring(limits.artifact / 2 + beyond)
  readonly #lastWritten = new Ring(2 * beyond)
  #fileBytes = 0
  #bytes = 0
  #error: string | null = null

  constructor(path: string) {
    this.#file = openSync(path, 'w', 0o600)
  }

  /** How much came so far. */
  get bytes(): number {
    return this.#bytes
  }

  push(chunk: Buffer): void {
    this.#bytes += chunk.length
    this.#text.push(chunk)
    const part = chunk.subarray(0, this.#fileHeadMax - this.#fileBytes)
    if (part.length > 0) {
      this.#write(part)
      this.#fileBytes += part.length
      this.#lastWritten.push(part)
    }
    if (part.length < chunk.length) this.#ring.push(chunk.subarray(part.length))
  }

  /** Completes and closes the file. To be called once, after the last `push`. */
  finish(): KeptOutput {
    let omittedBytes = 0
    const tail = this.#ring.bytes()
    if (this.#ring.dropped === 0) {
      this.#write(tail)
    } else {
      const written = this.#lastWritten.bytes()
      const cut = written.length - headLength(written, beyond)
      const start = tailStart(tail, limits.artifact / 2)
      omittedBytes = this.#ring.dropped + cut + start
      this.#truncate(this.#fileBytes - cut)
      this.#write(Buffer.from(`\n[${omittedBytes} bytes omitted here]\n`))
      this.#write(tail.subarray(start))
    }
    closeSync(this.#file)
    const edges = this.#text.edges()
    return {
      head: printable(edges.head),
      tail: printable(edges.tail),
      bytes: this.#bytes,
      omittedBytes,
      error: this.#error,
    }
  }

  #position = 0

  #write(bytes: Buffer): void {
    if (this.#error !== null) return
    try {
      let done = 0
      while (done < bytes.length) {
        const written = writeSync(this.#file, bytes, done, bytes.length - done, this.#position)
        done += written
        this.#position += written
      }
    } catch (error) {
      this.#error = `the output file is incomplete: ${error instanceof Error ? error.message : String(error)}`
    }
  }

  #truncate(length: number): void {
    if (this.#error !== null) return
    ftruncateSync(this.#file, length)
    this.#position = length
  }
}
