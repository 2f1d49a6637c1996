import { closeSync, ftruncateSync, openSync, writeSync } from 'node:fs'
import { limits } from '../limits.ts'
import { Ring } from './ring.ts'
import { orphanedBytes, printable, unfinishedBytes } from './text.ts'

/** What is left of a stream after its middle was left out; both parts end on whole characters. */
type Edges = { head: Buffer; tail: Buffer; omitted: number }

/**
 * Keeps the first `headMax` and the last `tailMax` bytes of a stream. The tail begins no earlier than the
 * head ends.
 */
class HeadAndTail {
  readonly #headMax: number
  readonly #ring: Ring
  #heads: Buffer[] = []
  #headBytes = 0

  constructor(headMax: number, tailMax: number) {
    this.#headMax = headMax
    this.#ring = new Ring(tailMax)
  }

  push(chunk: Buffer): void {
    const part = chunk.subarray(0, this.#headMax - this.#headBytes)
    if (part.length > 0) {
      // A copy: the chunk may be a slice of a pool that the stream reuses or that would be kept alive whole.
      this.#heads.push(Buffer.from(part))
      this.#headBytes += part.length
    }
    if (part.length < chunk.length) this.#ring.push(chunk.subarray(part.length))
  }

  edges(): Edges {
    const head = Buffer.concat(this.#heads)
    const tail = this.#ring.bytes()
    const cut = unfinishedBytes(head)
    const whole = head.subarray(0, head.length - cut)
    if (this.#ring.dropped === 0) {
      return { head: whole, tail: Buffer.concat([head.subarray(head.length - cut), tail]), omitted: 0 }
    }
    const orphaned = orphanedBytes(tail)
    return { head: whole, tail: tail.subarray(orphaned), omitted: this.#ring.dropped + cut + orphaned }
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
  readonly #fileHeadMax = limits.artifact / 2
  readonly #ring = new Ring(limits.artifact / 2)
  #fileBytes = 0
  #lastWritten: Buffer = Buffer.alloc(0)
  #bytes = 0
  #error: string | null = null

  constructor(path: string) {
    this.#file = openSync(path, 'w', 0o600)
  }

  push(chunk: Buffer): void {
    this.#bytes += chunk.length
    this.#text.push(chunk)
    const part = chunk.subarray(0, this.#fileHeadMax - this.#fileBytes)
    if (part.length > 0) {
      this.#write(part)
      this.#fileBytes += part.length
      this.#lastWritten = Buffer.concat([this.#lastWritten, part.subarray(-4)]).subarray(-4)
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
      const cut = unfinishedBytes(this.#lastWritten)
      const orphaned = orphanedBytes(tail)
      omittedBytes = this.#ring.dropped + cut + orphaned
      this.#truncate(this.#fileBytes - cut)
      this.#write(Buffer.from(`\n[${omittedBytes} bytes omitted here]\n`))
      this.#write(tail.subarray(orphaned))
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
