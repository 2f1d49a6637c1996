import { createReadStream, createWriteStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import pRetry, { AbortError } from 'p-retry'
import { z } from 'zod'
import { refusalSchema } from '../../lib/session/agent-protocol.ts'

/** Thrown when the API says that this worker is no longer the one: stop at once, whatever is under way. */
export class Superseded extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'Superseded'
  }
}

const problemSchema = z
  .object({
    code: z.string(),
    detail: z.string(),
    errors: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
    refusal: refusalSchema.optional(),
  })
  .loose()
type Problem = z.infer<typeof problemSchema>

/** Thrown when the API refuses one call for good, and the worker is still the one. */
export class Refused extends Error {
  readonly problem: Problem
  constructor(message: string, problem: Problem) {
    super(message)
    this.name = 'Refused'
    this.problem = problem
  }
}

type Call = {
  method: 'GET' | 'POST'
  path: string
  body?: unknown
  /** Ends this one call; the transport's own signal ends all. */
  signal?: AbortSignal
  /** What the call names may be unknown without the session being gone. */
  mayBeMissing?: boolean
}

export type TransportOptions = {
  api: string
  token: string
  signal: AbortSignal
  /** How often, and in which steps, a call is repeated while the API is out of reach. */
  patience: { retries: number; minTimeout: number; maxTimeout: number }
  /** Told before the call throws. */
  onSuperseded?: (reason: Superseded) => void
}

export type Transport = ReturnType<typeof createTransport>

/** HTTP to the API and to the addresses that it signs, repeated while they are out of reach. */
export const createTransport = (options: TransportOptions) => {
  const repeated = <Value>(signal: AbortSignal, attempt: () => Promise<Value>): Promise<Value> =>
    pRetry(attempt, { ...options.patience, factor: 2, randomize: true, signal })

  const superseded = (detail: string): AbortError => {
    const reason = new Superseded(detail)
    options.onSuperseded?.(reason)
    return new AbortError(reason)
  }

  const refusal = (call: Call, status: number, problem: Problem): Error => {
    const { code, detail } = problem
    if (code === 'superseded' || code === 'unauthenticated') return superseded(detail)
    if (code === 'not_found' && !call.mayBeMissing) return superseded(detail)
    const told = `${call.path.replace(/\?.*/, '')}: ${code}: ${detail}`
    const isFinal = status < 500 && code !== 'conflict'
    return isFinal ? new AbortError(new Refused(told, problem)) : new Error(told)
  }

  return {
    call: <Schema extends z.ZodType>(schema: Schema, call: Call): Promise<z.infer<Schema>> => {
      const { method, path, body } = call
      const signal = call.signal ? AbortSignal.any([options.signal, call.signal]) : options.signal
      return repeated(signal, async () => {
        const response = await fetch(`${options.api}/worker/v1/${path}`, {
          ...{ method, signal },
          headers: {
            authorization: `Bearer ${options.token}`,
            ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          },
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        })
        const answer: unknown = await response.json()
        if (response.ok) return schema.parse(answer)
        throw refusal(call, response.status, problemSchema.parse(answer))
      })
    },

    put: (url: string, file: string): Promise<void> =>
      repeated(options.signal, async () => {
        const { size } = await stat(file)
        const response = await fetch(url, {
          method: 'PUT',
          body: size === 0 ? '' : Readable.toWeb(createReadStream(file)),
          duplex: 'half',
          headers: { 'content-length': String(size) },
          signal: options.signal,
        })
        if (!response.ok) throw new Error(`upload answered ${response.status}`)
      }),

    download: (url: string, file: string): Promise<void> =>
      repeated(options.signal, async () => {
        const response = await fetch(url, { signal: options.signal })
        if (!response.ok || !response.body) throw new Error(`download answered ${response.status}`)
        await pipeline(Readable.fromWeb(response.body), createWriteStream(file), { signal: options.signal })
      }),
  }
}
