import { createHash, randomUUID, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { getRequestListener } from '@hono/node-server'
import { Hono } from 'hono'
import type { z } from 'zod'
import {
  type AskOutcome,
  createCollector,
  type GuidanceMessage,
  type Reports,
  type ToolError,
  type ToolErrorCode,
  toolErrorStatus,
  toolLimits,
  tools,
} from '../../lib/engine/tools.ts'
import { type ErrorCode, errorCodes, GatehouseError } from '../../lib/errors.ts'
import { newSecret } from '../../lib/ids.ts'
import { firstBytes } from '../../lib/text/shorten.ts'
import { foreignCaller } from '../loopback.ts'
import type { WorkerJournal } from './agent-journal.ts'
import { readJson, validated } from './tool-body.ts'
import { Refused } from './transport.ts'

export type ToolsOptions = {
  /**
   * Puts a question to a person and resolves when it is over. When `signal` aborts, nobody waits for the answer any more
   * and it has to settle; until it has, the engine can ask nothing else.
   */
  ask: (prompt: string, signal: AbortSignal) => Promise<AskOutcome>
  /** All guidance that this run may be given; what was handed out before is left out here. */
  guidance: () => Promise<GuidanceMessage[]>
  /** The session's journal, as far as the agent's records go. */
  journal: Pick<WorkerJournal, 'appendAs' | 'state' | 'settled'>
  /** Epoch milliseconds. */
  now: () => number
  /** How long a call may take to arrive. */
  requestMs?: number
}

export type Tools = {
  /** `http://127.0.0.1:<port>`; a tool is `POST <url>/<name>`. */
  url: string
  token: string
  reports: () => Reports
  /** Ends the wait for an answer and every connection; after that the reports change no more. */
  close: () => Promise<void>
}

/** Serves the tools of one engine run (spec/coder-session.md 4.4, 7.1) on loopback, to who has the token of that run. */
export const startTools = async (options: ToolsOptions): Promise<Tools> => {
  const token = newSecret()
  const closing = new AbortController()
  const collector = createCollector(options.now)
  const questions = createQuestions(options.ask)
  const guidance = shared(options.guidance)

  const app = createApp(token)
  const serve = toolServer(app, closing.signal)
  serve('ask_user', tools.ask_user, questions.ask)
  serve('guidance', tools.guidance, async (_, signal) => {
    const messages = await reached(guidance())
    requireLive(signal)
    return { messages: collector.handOut(messages) }
  })
  const append = createAppend(options.journal)
  serve('append_records', tools.append_records, append, toolLimits.recordsBody)
  serve('journal_state', tools.journal_state, () => reached(options.journal.state()))
  serve('report_no_change', tools.report_no_change, (nomination) => {
    collector.nominate(nomination)
    return { status: 'nominated' as const }
  })
  serve('report_status', tools.report_status, (status) => {
    collector.status(status)
    return { status: 'recorded' as const }
  })
  serve('report_usage', tools.report_usage, (usage) => ({ status: collector.usage(usage) }))

  const server = createToolServer(app, options.requestMs ?? toolLimits.requestMs)
  const url = await listen(server)
  const end = async () => {
    closing.abort()
    const closed = once(server, 'close')
    server.close()
    server.closeAllConnections()
    await closed
    const settled = Promise.all([questions.settled(), options.journal.settled()])
    await atMost(toolLimits.closeMs, settled)
  }
  let ended: Promise<void> | null = null
  return {
    ...{ url, token, reports: collector.reports },
    close: () => {
      ended ??= end()
      return ended
    },
  }
}

/** A tool said no; the engine's run goes on. */
class ToolRefusal extends Error {
  readonly code: ToolErrorCode

  constructor(code: ToolErrorCode, message: string) {
    super(message)
    this.name = 'ToolRefusal'
    this.code = code
  }
}

/** The API refused a batch of records; nothing of it was appended. */
class BatchRefusal extends Error {
  readonly code: ErrorCode
  readonly told: Omit<ToolError, 'code' | 'message'>

  constructor(code: ErrorCode, message: string, told: BatchRefusal['told']) {
    super(message)
    this.name = 'BatchRefusal'
    this.code = code
    this.told = told
  }
}

/** At most one question waits (spec/coder-session.md 4.4). */
const createQuestions = (ask: ToolsOptions['ask']) => {
  let asking: Promise<AskOutcome> | null = null
  return {
    ask: async ({ prompt }: { prompt: string }, signal: AbortSignal): Promise<{ text: string }> => {
      if (asking !== null) throw new ToolRefusal('question_pending', 'another question is still waiting')
      asking = ask(prompt, signal).finally(() => {
        asking = null
      })
      const outcome = await reached(asking)
      switch (outcome.kind) {
        case 'answered':
          return { text: outcome.text }
        case 'expired':
          throw new ToolRefusal('expired', `nobody answered within ${outcome.waited_secs} s; go on without`)
        case 'refused':
          throw new ToolRefusal('refused', outcome.reason)
      }
    },
    settled: async (): Promise<void> => {
      await asking?.catch(() => {})
    },
  }
}

/** What the API said of a batch that it refused, in this tool's words. */
const asRefused = ({ message, problem }: Refused): BatchRefusal => {
  const errors = problem.errors?.map(({ path, message: what }) => ({
    path: path.replace(/^facts/, 'records'),
    message: what,
  }))
  return new BatchRefusal(codeOf(problem.code), message, {
    ...(errors ? { errors } : {}),
    ...(problem.refusal ? { refusal: problem.refusal } : {}),
  })
}

const codeOf = (code: string): ErrorCode =>
  Object.keys(errorCodes).find((known): known is ErrorCode => known === code) ?? 'unavailable'

/** Passes batches on; their names hold within this run, since another one may use the same again. */
const createAppend = ({ appendAs }: ToolsOptions['journal']) => {
  const run = randomUUID()
  return async ({ batch_id = randomUUID(), records }: z.infer<typeof tools.append_records.input>) => {
    try {
      const { records: places } = await appendAs(digest(`${run} ${batch_id}`).toString('hex'), records)
      return { records: places }
    } catch (error) {
      throw error instanceof Refused ? asRefused(error) : unreached(error)
    }
  }
}

/** Calls that come while one is under way wait for that one's result. */
const shared = <Value>(call: () => Promise<Value>): (() => Promise<Value>) => {
  let running: Promise<Value> | null = null
  return () => {
    running ??= call().finally(() => {
      running = null
    })
    return running
  }
}

const unreached = (cause: unknown): GatehouseError =>
  new GatehouseError('unavailable', 'this could not be passed on; try again later', { cause })

const reached = async <Value>(call: Promise<Value>): Promise<Value> => {
  try {
    return await call
  } catch (cause) {
    throw unreached(cause)
  }
}

/** A call whose caller is gone, or that the end of the run overtook, leaves no trace. */
const requireLive = (signal: AbortSignal): void => {
  if (signal.aborted) throw new GatehouseError('unavailable', 'the run has ended')
}

const createApp = (token: string): Hono => {
  const app = new Hono()
  app.onError((error, c) => {
    const { status, ...problem } = told(error)
    if (status === 401) c.header('www-authenticate', 'Bearer')
    return c.json({ error: problem }, status)
  })
  app.notFound((c) => {
    throw new GatehouseError('not_found', `there is no tool ${firstBytes(c.req.path, 256)}`)
  })
  app.use(async (c, next) => {
    await next()
    c.header('connection', 'close')
  })
  app.use(async (c, next) => {
    if (!same(c.req.header('authorization') ?? '', `Bearer ${token}`)) {
      throw new GatehouseError('unauthenticated', 'send “Authorization: Bearer” with GATEHOUSE_TOOLS_TOKEN')
    }
    await next()
  })
  return app
}

const told = (error: unknown) => {
  if (error instanceof ToolRefusal) {
    return { code: error.code, status: toolErrorStatus[error.code], message: error.message }
  }
  if (error instanceof BatchRefusal) {
    const { code, message } = error
    return { code, status: errorCodes[code].status, message, ...error.told }
  }
  if (error instanceof GatehouseError) {
    return { code: error.code, status: errorCodes[error.code].status, message: error.message }
  }
  return { code: 'internal', status: errorCodes.internal.status, message: errorCodes.internal.title }
}

const same = (one: string, other: string): boolean => timingSafeEqual(digest(one), digest(other))
const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

type Tool<Input extends z.ZodType, Answer extends z.ZodType> = { input: Input; answer: Answer }

const toolServer =
  (app: Hono, closing: AbortSignal) =>
  <Input extends z.ZodType, Answer extends z.ZodType>(
    name: keyof typeof tools,
    { input }: Tool<Input, Answer>,
    run: (input: z.infer<Input>, signal: AbortSignal) => z.infer<Answer> | Promise<z.infer<Answer>>,
    most: number = toolLimits.body,
  ): void => {
    app.post(`/${name}`, async (c) => {
      const signal = AbortSignal.any([c.req.raw.signal, closing])
      const asked = validated(input, await readJson(c.req.raw, most))
      requireLive(signal)
      return c.json(await run(asked, signal))
    })
    app.all(`/${name}`, (c) => {
      c.header('allow', 'POST')
      throw new GatehouseError('method_not_allowed', `${name} takes POST alone`)
    })
  }

const createToolServer = (app: Hono, requestMs: number): Server => {
  const listener = getRequestListener(app.fetch, { overrideGlobalObjects: false })
  const server = createServer(
    { requestTimeout: requestMs, headersTimeout: requestMs, connectionsCheckingInterval: requestMs / 2 },
    (request, response) => {
      const foreign = foreignCaller(request)
      if (foreign === null) return void listener(request, response)
      const { status, ...error } = told(new GatehouseError('foreign_caller', foreign))
      response.writeHead(status, { 'content-type': 'application/json', connection: 'close' })
      response.end(JSON.stringify({ error }))
    },
  )
  server.maxConnections = toolLimits.connections
  server.maxRequestsPerSocket = 1
  return server
}

const listen = async (server: Server): Promise<string> => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the tools have no TCP address')
  return `http://127.0.0.1:${address.port}`
}

const atMost = async (ms: number, promise: Promise<unknown>): Promise<void> => {
  const settled = new AbortController()
  const late = sleep(ms, undefined, { signal: settled.signal }).catch(() => {})
  await Promise.race([promise, late])
  settled.abort()
}
