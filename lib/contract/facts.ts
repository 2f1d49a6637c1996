import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { ProcessResult } from '../process/run.ts'
import { holdsJson, type OutputAssertion, parseAssertion } from './assertion.ts'
import type { Told } from './environment/told.ts'
import type { ContractCheck } from './schema.ts'

/** What a verdict needs to know of one run's whole output, beyond the process's own end. */
export type OutputFacts = {
  /** SHA-256 of the combined output, in hex. */
  digest: string
  /** The first number in the output. */
  number: number | null
  /** How the check's output assertion came out; null when it has none. */
  assertion: 'met' | 'missing' | 'not_json' | null
}

/**
 * One run of a check. `clamped`: its time limit was what the session had left, not the check's own. `told`: what the output
 * of one that is not green says besides.
 */
export type CheckRun = { process: ProcessResult; facts: OutputFacts; clamped: boolean; told?: Told }

/** Finds bytes in a stream of chunks without keeping the stream. */
export class ByteSearch {
  readonly #needle: Buffer
  #carry: Buffer = Buffer.alloc(0)
  found = false

  constructor(needle: string) {
    this.#needle = Buffer.from(needle, 'utf8')
  }

  push(chunk: Buffer): void {
    if (this.found) return
    const overlap = this.#needle.length - 1
    const seam = Buffer.concat([this.#carry, chunk.subarray(0, overlap)])
    this.found = seam.includes(this.#needle) || chunk.includes(this.#needle)
    const kept = chunk.length >= overlap ? chunk : Buffer.concat([this.#carry, chunk])
    this.#carry = Buffer.from(kept.subarray(Math.max(0, kept.length - overlap)))
  }
}

/** Watches one run's output while it streams by, since the file of a very long output lacks its middle. */
export class OutputWatch {
  readonly #hash = createHash('sha256')
  readonly #assertion: OutputAssertion | { problem: string } | null
  readonly #search: ByteSearch | null
  readonly #wantsNumber: boolean

  constructor(check: ContractCheck) {
    this.#assertion = check.output_contains === null ? null : parseAssertion(check.output_contains)
    const bytes = this.#assertion !== null && 'kind' in this.#assertion && this.#assertion.kind === 'bytes'
    this.#search = bytes && check.output_contains !== null ? new ByteSearch(check.output_contains) : null
    this.#wantsNumber = check.baseline || typeof check.differential?.expect === 'object'
  }

  push(chunk: Buffer): void {
    this.#hash.update(chunk)
    this.#search?.push(chunk)
  }

  /** The facts, once the run has ended. Reads the output file only for a number or a JSON assertion. */
  async facts(outputFile: string, omittedBytes: number): Promise<OutputFacts> {
    return {
      digest: this.#hash.digest('hex'),
      number: this.#wantsNumber ? firstNumber(await readOutput(outputFile)) : null,
      assertion: await this.#assertionFact(outputFile, omittedBytes),
    }
  }

  async #assertionFact(outputFile: string, omittedBytes: number): Promise<OutputFacts['assertion']> {
    if (this.#assertion === null) return null
    if (this.#search !== null) return this.#search.found ? 'met' : 'missing'
    if (!('kind' in this.#assertion) || this.#assertion.kind !== 'json') return 'missing'
    return omittedBytes > 0 ? 'not_json' : holdsJson(await readOutput(outputFile), this.#assertion)
  }
}

/** The first number in a text, such as 82.5 in "coverage: 82.5 %"; null when it is none that JSON and the store keep exactly. */
export const firstNumber = (text: string): number | null => {
  const match = /(?<![\w.])-?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?/.exec(text)
  const number = match === null ? Number.NaN : Number(match[0])
  const isKept = number === 0 || (Math.abs(number) <= Number.MAX_SAFE_INTEGER && Math.abs(number) > 1e-100)
  return isKept ? number : null
}

const readOutput = async (path: string): Promise<string> => {
  try {
    return await readFile(path, 'utf8')
  } catch {
    return ''
  }
}
