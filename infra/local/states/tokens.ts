import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { z } from 'zod'
import { limits } from './limits.ts'
import { ServiceError } from './service-error.ts'

/** The execution whose task a token belongs to. */
export interface TokenOwner {
  machine: string
  name: string
}

/**
 * Task tokens: opaque base64url, one a task attempt, signed so that only a token minted here is ever looked up. The key
 * is kept in `path`, so a token from before a restart is still told apart from a forged one.
 */
export class Tokens {
  readonly #key: Buffer

  private constructor(key: Buffer) {
    this.#key = key
  }

  static async open(path: string): Promise<Tokens> {
    const kept = await readFile(path).catch(() => undefined)
    if (kept?.length === keyBytes) return new Tokens(kept)
    const key = randomBytes(keyBytes)
    await writeFile(path, key, { mode: 0o600 })
    return new Tokens(key)
  }

  mint({ machine, name }: TokenOwner): string {
    const content = Buffer.from(JSON.stringify([machine, name, randomBytes(12).toString('base64url')]))
    return Buffer.concat([version, this.#sign(content), content]).toString('base64url')
  }

  /** Whose token it is; `InvalidToken` for anything not minted with this key. */
  ownerOf(token: string): TokenOwner {
    const bytes = Buffer.from(token, 'base64url')
    const content = bytes.subarray(headBytes)
    const genuine =
      token.length <= limits.tokenCharacters &&
      bytes.toString('base64url') === token &&
      bytes.length > headBytes &&
      timingSafeEqual(bytes.subarray(0, headBytes), Buffer.concat([version, this.#sign(content)]))
    if (!genuine) throw new ServiceError('InvalidToken', "Invalid Token: 'Invalid token'")
    const [machine, name] = tokenContent.parse(JSON.parse(content.toString()))
    return { machine, name }
  }

  #sign(content: Buffer): Buffer {
    return createHmac('sha256', this.#key).update(content).digest().subarray(0, signatureBytes)
  }
}

const tokenContent = z.tuple([z.string(), z.string(), z.string()])
const keyBytes = 32
const signatureBytes = 16
// Also keeps a token from beginning with a hyphen, which command lines take for an option.
const version = Buffer.from([1])
const headBytes = version.length + signatureBytes
