import { createReadStream, createWriteStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import pRetry, { AbortError } from 'p-retry'
import { z } from 'zod'
import type { EventFact } from '../../lib/journal/facts.ts'
import {
  type CommandAnswer,
  commandAnswerSchema,
  completeSchema,
  heartbeatSchema,
  leaseSchema,
  type Result,
  uploadsSchema,
} from '../../lib/session/protocol.ts'

/** Thrown when the API says that this worker is no longer the one: stop at once, whatever is under way. */
export class Superseded extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'Superseded'
  }
}

const problemSchema = z.object({ code: z.string(), detail: z.string() }).loose()

/** How long the API may be out of reach before the worker gives up; its lease has then expired. */
const patience = { retries: 12, minTimeout: 50, maxTimeout: 5_000, factor: 2, randomize: true } as const

export type Upload = { kind: 'artifact' | 'bundle'; name: string; file: string }
export type Client = ReturnType<typeof createClient>

/** The worker protocol (API.md) as calls. Each may be repeated by the network; each carries the lease's epoch. */
export const createClient = (options: { api: string; token: string; signal: AbortSignal }) => {
  let epoch = 0

  const call = <Schema extends z.ZodType>(
    method: 'GET' | 'POST',
    path: string,
    schema: Schema,
    body?: unknown,
  ): Promise<z.infer<Schema>> =>
    pRetry(
      async () => {
        const response = await fetch(`${options.api}/worker/v1/${path}`, {
          method,
          signal: options.signal,
          headers: {
            authorization: `Bearer ${options.token}`,
            ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          },
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        })
        const answer: unknown = await response.json()
        if (response.ok) return schema.parse(answer)
        const { code, detail } = problemSchema.parse(answer)
        if (code === 'superseded' || code === 'unauthenticated' || code === 'not_found')
          throw new AbortError(new Superseded(detail))
        const told = new Error(`${path}: ${code}: ${detail}`)
        throw response.status < 500 && code !== 'conflict' ? new AbortError(told) : told
      },
      { ...patience, signal: options.signal },
    )

  const put = (url: string, file: string) =>
    pRetry(
      async () => {
        const { size } = await stat(file)
        const body = size === 0 ? '' : Readable.toWeb(createReadStream(file))
        const response = await fetch(url, {
          method: 'PUT',
          body,
          duplex: 'half',
          headers: { 'content-length': String(size) },
          signal: options.signal,
        })
        if (!response.ok) throw new Error(`upload answered ${response.status}`)
      },
      { ...patience, signal: options.signal },
    )

  return {
    lease: async (): Promise<{ heartbeat_ms: number }> => {
      const lease = await call('POST', 'lease', leaseSchema, {})
      epoch = lease.epoch
      return lease
    },

    command: (): Promise<CommandAnswer> => call('GET', `command?epoch=${epoch}`, commandAnswerSchema),

    heartbeat: async (): Promise<void> => {
      await call('POST', 'heartbeat', heartbeatSchema, { epoch })
    },

    entries: async (batchId: string, facts: readonly EventFact[]): Promise<void> => {
      await call('POST', 'entries', z.object({ sequence: z.number() }), { epoch, batch_id: batchId, facts })
    },

    /** Uploads files under their names; resolves when all are stored. */
    upload: async (uploads: readonly Upload[]): Promise<void> => {
      if (uploads.length === 0) return
      const asked = uploads.map(({ kind, name }) => ({ kind, name }))
      const answer = await call('POST', 'uploads', uploadsSchema, { epoch, uploads: asked })
      await Promise.all(
        uploads.map(({ kind, name, file }) => {
          const target = answer.uploads.find((signed) => signed.kind === kind && signed.name === name)
          if (!target) throw new Error(`no address to upload ${name} to`)
          return put(target.url, file)
        }),
      )
    },

    download: (url: string, file: string): Promise<void> =>
      pRetry(
        async () => {
          const response = await fetch(url, { signal: options.signal })
          if (!response.ok || !response.body) throw new Error(`download answered ${response.status}`)
          await pipeline(Readable.fromWeb(response.body), createWriteStream(file))
        },
        { ...patience, signal: options.signal },
      ),

    complete: async (commandId: string, result: Result, facts: readonly EventFact[]): Promise<void> => {
      await call('POST', 'complete', completeSchema, { epoch, command_id: commandId, result, facts })
    },
  }
}
