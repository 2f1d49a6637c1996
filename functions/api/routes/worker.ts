import { setTimeout as sleep } from 'node:timers/promises'
import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { GatehouseError } from '../../../lib/errors.ts'
import { idSchema } from '../../../lib/ids.ts'
import { reservedPrefix } from '../../../lib/journal/data-ref.ts'
import { limits } from '../../../lib/limits.ts'
import { entriesSchema, type Transcript } from '../../../lib/session/agent-protocol.ts'
import { agentView, transcriptOf } from '../../../lib/session/agent-view.ts'
import type { SessionItem } from '../../../lib/session/item.ts'
import {
  commandAnswerSchema,
  completeRequestSchema,
  completeSchema,
  entriesRequestSchema,
  guidanceSchema,
  heartbeatRequestSchema,
  heartbeatSchema,
  journalStateSchema,
  leaseRequestSchema,
  leaseSchema,
  type QuestionAnswer,
  questionAnswerSchema,
  questionRequestSchema,
  retainRequestSchema,
  uploadsRequestSchema,
  uploadsSchema,
} from '../../../lib/session/protocol.ts'
import { isTerminal } from '../../../lib/session/states.ts'
import {
  ask,
  expireQuestion,
  mayRetain,
  nextCommand,
  renewLease,
  requireLease,
  retain,
  takeLease,
} from '../../../lib/session/worker.ts'
import { appendBatch } from '../../../lib/store/appends.ts'
import { transition } from '../../../lib/store/effects.ts'
import { objectKey } from '../../../lib/store/keys.ts'
import type { Platform } from '../../../lib/store/platform.ts'
import { renewSlot } from '../../../lib/store/queue.ts'
import { type WorkerPrincipal, worker } from '../auth.ts'
import { completeCommand, describeCommand } from '../commands.ts'
import type { Env } from '../env.ts'
import { answers, bodyProblems, jsonBody, needs, problems } from '../openapi.ts'

const post = <Path extends string, Body extends z.ZodType, Answer extends z.ZodType>(
  path: Path,
  summary: string,
  body: Body,
  answer: Answer,
) =>
  createRoute({
    method: 'post',
    security: needs('worker'),
    path: `/worker/v1/${path}` as const,
    summary,
    request: { body: jsonBody(body) },
    responses: { 200: answers(answer, summary), ...bodyProblems },
  })

const routes = {
  lease: post(
    'lease',
    'Take the session’s lease; the worker before is superseded',
    leaseRequestSchema,
    leaseSchema,
  ),
  heartbeat: post(
    'heartbeat',
    'Keep the lease and the parked step alive',
    heartbeatRequestSchema,
    heartbeatSchema,
  ),
  entries: post(
    'entries',
    'Append events and the agent’s records to the journal, all or nothing',
    entriesRequestSchema,
    entriesSchema,
  ),
  uploads: post(
    'uploads',
    'Addresses to upload artifacts and bundles to',
    uploadsRequestSchema,
    uploadsSchema,
  ),
  complete: post('complete', 'End the command in hand', completeRequestSchema, completeSchema),
  question: post(
    'question',
    'Ask a person for the running engine',
    questionRequestSchema,
    questionAnswerSchema,
  ),
  retain: post('retain', 'Keep the work of a session that has just ended', retainRequestSchema, z.object({})),
}

const polls = (most: number) => z.coerce.number().int().min(0).max(most).default(most)
const epochQuery = z.coerce.number().int().min(1)

const question = createRoute({
  method: 'get',
  security: needs('worker'),
  path: '/worker/v1/question',
  summary: 'What has become of a question; waits for its answer',
  request: {
    query: z.object({ epoch: epochQuery, request_id: idSchema('req'), wait_ms: polls(limits.commandPollMs) }),
  },
  responses: { 200: answers(questionAnswerSchema, 'The question, answered or not'), ...problems },
})

const guidance = createRoute({
  method: 'get',
  security: needs('worker'),
  path: '/worker/v1/guidance',
  summary: 'All guidance that the session has accepted',
  request: { query: z.object({ epoch: epochQuery }) },
  responses: { 200: answers(guidanceSchema, 'The messages, oldest first'), ...problems },
})

const journal = createRoute({
  method: 'get',
  security: needs('worker'),
  path: '/worker/v1/journal',
  summary: 'What the agent’s records come to, for a restarted engine to go on from',
  request: { query: z.object({ epoch: epochQuery }) },
  responses: { 200: answers(journalStateSchema, 'What may happen next, and the transcript'), ...problems },
})

const command = createRoute({
  method: 'get',
  security: needs('worker'),
  path: '/worker/v1/command',
  summary: 'The command in hand; waits for one',
  request: {
    query: z.object({ epoch: epochQuery, wait_ms: polls(limits.commandPollMs) }),
  },
  responses: { 200: answers(commandAnswerSchema, 'Something to do, nothing yet, or the end'), ...problems },
})

/** A question as its worker sees it. Throws `not_found` for one that the session does not know any more. */
const questionOf = ({ document: { question: asked } }: SessionItem, requestId: string): QuestionAnswer => {
  if (asked?.request_id !== requestId) throw new GatehouseError('not_found', `no question ${requestId}`)
  const { status, answer, deadline_at } = asked
  return { status, answer, deadline_at }
}

/** Data that the journal refers to is written by the API alone. */
const requireFree = (uploads: readonly { kind: string; name: string }[]): void => {
  const errors = uploads.flatMap(({ kind, name }, index) =>
    kind === 'artifact' && name.startsWith(reservedPrefix)
      ? [{ path: `uploads.${index}.name`, message: `may not begin with ${reservedPrefix}` }]
      : [],
  )
  if (errors.length > 0)
    throw new GatehouseError('invalid_request', 'the request does not validate', { errors })
}

/** A transcript, or where it is kept when it is too long for an answer. */
const transcriptAnswer = async (
  { payloads, blobs }: Platform,
  item: SessionItem,
  transcript: Transcript,
): Promise<z.infer<typeof journalStateSchema>['transcript']> => {
  if (Buffer.byteLength(JSON.stringify(transcript)) <= limits.inlineTranscript) return transcript
  const { artifact } = await payloads.store(item, transcript)
  return { url: await blobs.downloadUrl(objectKey.artifact(item.team, item.id, artifact)) }
}

export const workerRoutes = (app: OpenAPIHono<Env>, platform: Platform): void => {
  const idOf = ({ team, session_id }: WorkerPrincipal) => ({ team, id: session_id })

  /** Waits until a poll may look again; false when it has waited long enough, or nobody waits for its answer any more. */
  const mayLookAgain = async (c: Context<Env>, until: number, pause: number): Promise<boolean> => {
    const { signal } = c.req.raw
    if (platform.clock() + pause > until) return false
    await sleep(pause, undefined, { signal }).catch(() => {})
    return !signal.aborted
  }

  app.openapi(routes.lease, async (c) => {
    const who = worker(c.get('principal'))
    const { claim } = c.req.valid('json')
    const item = await transition(platform, idOf(who), (now) =>
      takeLease(now, who.worker_id, claim, platform.clock()),
    )
    const { epoch, expires_at } = item.runtime.lease
    return c.json(
      { session_id: item.id, epoch, expires_at: expires_at ?? '', heartbeat_ms: limits.heartbeatMs },
      200,
    )
  })

  app.openapi(command, async (c) => {
    const who = worker(c.get('principal'))
    const { epoch, wait_ms } = c.req.valid('query')
    const until = platform.clock() + wait_ms
    for (let pause = 20; ; pause = Math.min(pause * 2, 250)) {
      const outcome: { stop: string | null } = { stop: null }
      const item = await platform.sessions.update(idOf(who), (now) => {
        const next = nextCommand(now, { worker_id: who.worker_id, epoch })
        outcome.stop = next.kind === 'stop' ? next.reason : null
        return next.kind === 'stop' ? next.change : null
      })
      if (outcome.stop !== null) return c.json({ kind: 'stop' as const, reason: outcome.stop }, 200)
      if (item.runtime.command)
        return c.json(
          { kind: 'command' as const, command: await describeCommand(platform, item, item.runtime.command) },
          200,
        )
      if (!(await mayLookAgain(c, until, pause))) return c.json({ kind: 'wait' as const }, 200)
    }
  })

  app.openapi(routes.heartbeat, async (c) => {
    const who = worker(c.get('principal'))
    const { epoch, receipt } = c.req.valid('json')
    const item = await platform.sessions.update(idOf(who), (now) =>
      renewLease(now, { worker_id: who.worker_id, epoch }, platform.clock(), receipt),
    )
    if (item.runtime.task) await platform.machine.heartbeat(item.runtime.task.token)
    await renewSlot(platform, item.team, item.id)
    return c.json({ expires_at: item.runtime.lease.expires_at ?? '' }, 200)
  })

  app.openapi(routes.entries, async (c) => {
    const who = worker(c.get('principal'))
    const { epoch, batch_id: id, facts, receipt } = c.req.valid('json')
    const lease = { worker_id: who.worker_id, epoch }
    return c.json(await appendBatch(platform, idOf(who), lease, { id, facts, receipt }), 200)
  })

  app.openapi(routes.uploads, async (c) => {
    const who = worker(c.get('principal'))
    const { epoch, uploads } = c.req.valid('json')
    requireFree(uploads)
    const item = await platform.sessions.require(idOf(who))
    const lease = { worker_id: who.worker_id, epoch }
    if (!mayRetain(item, lease)) requireLease(item, lease)
    const signed = uploads.map(async ({ kind, name }) => {
      const key =
        kind === 'bundle'
          ? objectKey.bundle(item.team, item.id, name)
          : objectKey.artifact(item.team, item.id, name)
      return { kind, name, url: await platform.blobs.uploadUrl(key) }
    })
    return c.json({ uploads: await Promise.all(signed) }, 200)
  })

  app.openapi(routes.question, async (c) => {
    const who = worker(c.get('principal'))
    const { epoch, request_id, prompt } = c.req.valid('json')
    const item = await transition(platform, idOf(who), (now) =>
      ask(now, { worker_id: who.worker_id, epoch }, { request_id, prompt }, platform.clock()),
    )
    return c.json(questionOf(item, request_id), 200)
  })

  app.openapi(question, async (c) => {
    const who = worker(c.get('principal'))
    const { epoch, request_id, wait_ms } = c.req.valid('query')
    const lease = { worker_id: who.worker_id, epoch }
    const until = platform.clock() + wait_ms
    for (let pause = 50; ; pause = Math.min(pause * 2, 500)) {
      const item = await platform.sessions.require(idOf(who))
      requireLease(item, lease)
      const { deadline_at, ...asked } = questionOf(item, request_id)
      const isLate = platform.clock() >= Date.parse(deadline_at)
      if (asked.status === 'pending' && isLate)
        await transition(platform, idOf(who), (now) =>
          expireQuestion(now, { kind: 'worker', id: who.worker_id }, platform.clock()),
        )
      else if (asked.status !== 'pending' || !(await mayLookAgain(c, until, pause)))
        return c.json({ ...asked, deadline_at }, 200)
    }
  })

  app.openapi(guidance, async (c) => {
    const who = worker(c.get('principal'))
    const item = await platform.sessions.require(idOf(who))
    requireLease(item, { worker_id: who.worker_id, epoch: c.req.valid('query').epoch })
    return c.json({ messages: item.document.steering_messages }, 200)
  })

  app.openapi(journal, async (c) => {
    const who = worker(c.get('principal'))
    const item = await platform.sessions.require(idOf(who))
    requireLease(item, { worker_id: who.worker_id, epoch: c.req.valid('query').epoch })
    const state = await platform.heads.at(item)
    const view = agentView(state, new Date(platform.clock()).toISOString())
    return c.json({ ...view, transcript: await transcriptAnswer(platform, item, transcriptOf(state)) }, 200)
  })

  app.openapi(routes.retain, async (c) => {
    const who = worker(c.get('principal'))
    const { epoch, checkpoint } = c.req.valid('json')
    await transition(platform, idOf(who), (now) =>
      retain(now, { worker_id: who.worker_id, epoch }, checkpoint),
    )
    return c.json({}, 200)
  })

  app.openapi(routes.complete, async (c) => {
    const who = worker(c.get('principal'))
    const item = await completeCommand(platform, idOf(who), who.worker_id, c.req.valid('json'))
    const next = isTerminal(item.document.state) ? 'Settle' : item.document.step
    return c.json({ next, leave: item.runtime.lease.worker_id !== who.worker_id }, 200)
  })
}
