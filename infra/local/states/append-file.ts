import { appendFile, stat, truncate } from 'node:fs/promises'
import { setImmediate as nextTick } from 'node:timers/promises'

/**
 * A file of lines that only grows. Lines reach the disk in the order they were appended; those of one turn of the
 * event loop share a write.
 */
export class AppendFile {
  readonly path: string
  #pending: string[] = []
  #writing: Promise<void> | undefined

  constructor(path: string) {
    this.path = path
  }

  /** Takes one line without its line end; returns at once. */
  append(line: string): void {
    this.#pending.push(`${line}\n`)
    this.#start()
  }

  /** Whether every line appended so far is in the file. */
  get isFlushed(): boolean {
    return this.#pending.length === 0 && this.#writing === undefined
  }

  /** Resolves when every line appended so far is in the file; rejects when they could not be written (kept for retry). */
  async flushed(): Promise<void> {
    while (!this.isFlushed) await this.#start()
  }

  #start(): Promise<void> {
    if (this.#writing) return this.#writing
    const writing = this.#drain()
    // Whoever needs the lines on disk awaits flushed(); an append alone must not bring the process down.
    writing.catch(() => {})
    this.#writing = writing
    return writing
  }

  async #drain(): Promise<void> {
    await nextTick()
    let lines: string[] = []
    try {
      while (this.#pending.length > 0) {
        lines = this.#pending
        this.#pending = []
        await appendWhole(this.path, lines.join(''))
      }
    } catch (error) {
      this.#pending = [...lines, ...this.#pending]
      throw error
    } finally {
      this.#writing = undefined
    }
  }
}

// A disk that fills up takes the beginning of a write; left there, the lines that are tried again would follow half a line.
async function appendWhole(path: string, text: string): Promise<void> {
  const before = await stat(path).then(
    ({ size }) => size,
    () => 0,
  )
  try {
    await appendFile(path, text)
  } catch (error) {
    await truncate(path, before).catch(() => {})
    throw error
  }
}
