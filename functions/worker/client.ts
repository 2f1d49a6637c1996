import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { EventFact } from '../../lib/journal/event-facts.ts'
import { type Appended, entriesSchema } from '../../lib/session/agent-protocol.ts'
import {
  type CommandAnswer,
  commandAnswerSchema,
  completeSchema,
  guidanceSchema,
  heartbeatSchema,
  journalStateSchema,
  leaseSchema,
  type QuestionAnswer,
  questionAnswerSchema,
  type Result,
  type retainRequestSchema,
  type StatedFact,
  uploadsSchema,
} from '../../lib/session/protocol.ts'
import { createTransport, type Transport, type TransportOptions } from './transport.ts'

/** How long the API may be out of reach before the worker gives up; its lease has then expired. */
const patience = { retries: 12, minTimeout: 50, maxTimeout: 5_000 } as const
/** On the way out there is no time to wait for an API that is gone. */
const briefPatience = { retries: 2, minTimeout: 100, maxTimeout: 200 } as const

export type Upload = { kind: 'artifact' | 'bundle'; name: string; file: string }
type Target = Omit<Upload, 'file'>
export type Client = ReturnType<typeof createClient>
export type Retained = z.infer<typeof retainRequestSchema>['checkpoint']

const post = { method: 'POST' } as const
const get = { method: 'GET' } as const

/** Addresses to upload to, in the order in which they were asked for. */
const addressesOf = async (
  { call }: Transport,
  epoch: number,
  targets: readonly Target[],
): Promise<string[]> => {
  const answer = await call(uploadsSchema, { ...post, path: 'uploads', body: { epoch, uploads: targets } })
  return targets.map(({ kind, name }) => {
    const signed = answer.uploads.find((one) => one.kind === kind && one.name === name)
    if (!signed) throw new Error(`no address to upload ${name} to`)
    return signed.url
  })
}

/** The worker protocol (API.md) as calls. Each may be repeated by the network; each carries the lease's epoch. */
export const createClient = (options: Omit<TransportOptions, 'patience'>) => {
  let epoch = 0
  let receipt: string | null = null
  let lastEntries: Promise<unknown> = Promise.resolve()
  const transport = createTransport({ ...options, patience })
  const { call, put, download } = transport

  return {
    download,

    lease: async (): Promise<z.infer<typeof leaseSchema>> => {
      const lease = await call(leaseSchema, { ...post, path: 'lease', body: { claim: randomUUID() } })
      epoch = lease.epoch
      return lease
    },

    command: (): Promise<CommandAnswer> =>
      call(commandAnswerSchema, { ...get, path: `command?epoch=${epoch}` }),

    heartbeat: async (): Promise<void> => {
      await call(heartbeatSchema, { ...post, path: 'heartbeat', body: { epoch, receipt } })
    },

    /**
     * Appends facts, all or nothing; resolves once they are durable. Batches go out one at a time, so that each tells the
     * next one's receipt. Throws `Refused` for what can't be appended.
     */
    entries: (batchId: string, facts: readonly StatedFact[]): Promise<Appended> => {
      const sent = lastEntries.then(async () => {
        const body = { epoch, batch_id: batchId, facts, receipt }
        const appended = await call(entriesSchema, { ...post, path: 'entries', body })
        receipt = appended.receipt
        return appended
      })
      lastEntries = sent.catch(() => {})
      return sent
    },

    /** What the agent's records come to; the transcript, or where it can be downloaded. */
    journal: (): Promise<z.infer<typeof journalStateSchema>> =>
      call(journalStateSchema, { ...get, path: `journal?epoch=${epoch}` }),

    /** Uploads files under their names; resolves when all are stored. */
    upload: async (uploads: readonly Upload[]): Promise<void> => {
      if (uploads.length === 0) return
      const targets = uploads.map(({ kind, name }) => ({ kind, name }))
      const addresses = await addressesOf(transport, epoch, targets)
      await Promise.all(uploads.map(({ file }, index) => put(addresses[index] ?? '', file)))
    },

    /** Puts a question; a repeat with the same id asks nothing anew. Throws `Refused` when none can be asked now. */
    ask: (request_id: string, prompt: string, signal: AbortSignal): Promise<QuestionAnswer> =>
      call(questionAnswerSchema, { ...post, path: 'question', body: { epoch, request_id, prompt }, signal }),

    /** Waits a while for the answer. Throws `Refused` when the session no longer knows the question. */
    question: (request_id: string, signal: AbortSignal): Promise<QuestionAnswer> => {
      const path = `question?epoch=${epoch}&request_id=${request_id}`
      return call(questionAnswerSchema, { ...get, path, signal, mayBeMissing: true })
    },

    /** All guidance that the session has accepted, oldest first. */
    guidance: async (): Promise<string[]> =>
      (await call(guidanceSchema, { ...get, path: `guidance?epoch=${epoch}` })).messages,

    /** Ends the command in hand; the answer says whether that was the worker's last. */
    complete: (
      commandId: string,
      result: Result,
      facts: readonly EventFact[],
    ): Promise<z.infer<typeof completeSchema>> => {
      const body = { epoch, command_id: commandId, result, facts, receipt }
      return call(completeSchema, { ...post, path: 'complete', body })
    },

    /**
     * Calls for a worker that was told to stop: `signal` ends them, and the client's own does not. Each throws
     * `Superseded` where the session does not keep its work.
     */
    leaving: (signal: AbortSignal) => {
      const { api, token } = options
      const last = createTransport({ api, token, signal, patience: briefPatience })
      return {
        put: last.put,
        addressOf: async (target: Target): Promise<string> =>
          (await addressesOf(last, epoch, [target]))[0] ?? '',
        retain: async (checkpoint: Retained): Promise<void> => {
          await last.call(z.object({}), { ...post, path: 'retain', body: { epoch, checkpoint } })
        },
      }
    },
  }
}
