import { setTimeout as sleep } from 'node:timers/promises'
import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi'
import { limits } from '../../../lib/limits.ts'
import {
  commandAnswerSchema,
  completeRequestSchema,
  completeSchema,
  entriesRequestSchema,
  heartbeatRequestSchema,
  heartbeatSchema,
  leaseRequestSchema,
  leaseSchema,
  uploadsRequestSchema,
  uploadsSchema,
} from '../../../lib/session/protocol.ts'
import { isTerminal } from '../../../lib/session/states.ts'
import { appendEvents, nextCommand, renewLease, takeLease } from '../../../lib/session/worker.ts'
import { carryOut, transition } from '../../../lib/store/effects.ts'
import { objectKey } from '../../../lib/store/keys.ts'
import type { Platform } from '../../../lib/store/platform.ts'
import { type WorkerPrincipal, worker } from '../auth.ts'
import { completeCommand, describeCommand } from '../commands.ts'
import type { Env } from '../env.ts'
import { answers, jsonBody, problems } from '../openapi.ts'

const post = <Path extends string, Body extends z.ZodType, Answer extends z.ZodType>(
  path: Path,
  summary: string,
  body: Body,
  answer: Answer,
) =>
  createRoute({
    method: 'post',
    path: `/worker/v1/${path}` as const,
    summary,
    request: { body: jsonBody(body) },
    responses: { 200: answers(answer, summary), ...problems },
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
    'Append events to the journal',
    entriesRequestSchema,
    z.object({ sequence: z.number().int() }),
  ),
  uploads: post(
    'uploads',
    'Addresses to upload artifacts and bundles to',
    uploadsRequestSchema,
    uploadsSchema,
  ),
  complete: post('complete', 'End the command in hand', completeRequestSchema, completeSchema),
}

const command = createRoute({
  method: 'get',
  path: '/worker/v1/command',
  summary: 'The command in hand; waits for one',
  request: {
    query: z.object({
      epoch: z.coerce.number().int().min(1),
      wait_ms: z.coerce.number().int().min(0).max(limits.commandPollMs).default(limits.commandPollMs),
    }),
  },
  responses: { 200: answers(commandAnswerSchema, 'Something to do, nothing yet, or the end'), ...problems },
})

export const workerRoutes = (app: OpenAPIHono<Env>, platform: Platform): void => {
  const idOf = ({ team, session_id }: WorkerPrincipal) => ({ team, id: session_id })

  app.openapi(routes.lease, async (c) => {
    const who = worker(c.get('principal'))
    const item = await transition(platform, idOf(who), (now) =>
      takeLease(now, who.worker_id, platform.clock()),
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
      if (platform.clock() + pause > until) return c.json({ kind: 'wait' as const }, 200)
      await sleep(pause)
    }
  })

  app.openapi(routes.heartbeat, async (c) => {
    const who = worker(c.get('principal'))
    const lease = { worker_id: who.worker_id, epoch: c.req.valid('json').epoch }
    const item = await platform.sessions.update(idOf(who), (now) => renewLease(now, lease, platform.clock()))
    if (item.runtime.task) await platform.machine.heartbeat(item.runtime.task.token)
    return c.json({ expires_at: item.runtime.lease.expires_at ?? '' }, 200)
  })

  app.openapi(routes.entries, async (c) => {
    const who = worker(c.get('principal'))
    const { epoch, batch_id, facts } = c.req.valid('json')
    const item = await platform.sessions.update(idOf(who), (now) =>
      appendEvents(now, { worker_id: who.worker_id, epoch }, batch_id, facts),
    )
    await carryOut(platform, item)
    return c.json({ sequence: item.journal_head.sequence }, 200)
  })

  app.openapi(routes.uploads, async (c) => {
    const who = worker(c.get('principal'))
    const { epoch, uploads } = c.req.valid('json')
    const item = await platform.sessions.require(idOf(who))
    renewLease(item, { worker_id: who.worker_id, epoch }, platform.clock())
    const signed = uploads.map(async ({ kind, name }) => {
      const key =
        kind === 'bundle'
          ? objectKey.bundle(item.team, item.id, name)
          : objectKey.artifact(item.team, item.id, name)
      return { kind, name, url: await platform.blobs.uploadUrl(key) }
    })
    return c.json({ uploads: await Promise.all(signed) }, 200)
  })

  app.openapi(routes.complete, async (c) => {
    const who = worker(c.get('principal'))
    const item = await completeCommand(platform, idOf(who), who.worker_id, c.req.valid('json'))
    return c.json({ next: isTerminal(item.document.state) ? 'Settle' : item.document.step }, 200)
  })
}
