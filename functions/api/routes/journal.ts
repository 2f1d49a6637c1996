import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi'
import { streamSSE } from 'hono/streaming'
import { GatehouseError } from '../../../lib/errors.ts'
import { type Entry, entrySchema, headSchema } from '../../../lib/journal/entry.ts'
import { limits } from '../../../lib/limits.ts'
import type { SessionItem } from '../../../lib/session/item.ts'
import { isTerminal } from '../../../lib/session/states.ts'
import { drained } from '../../../lib/store/effects.ts'
import type { Platform } from '../../../lib/store/platform.ts'
import { proveJournal } from '../../../lib/store/proof.ts'
import { person } from '../auth.ts'
import type { Env } from '../env.ts'
import { follow } from '../follow.ts'
import { answers, problems } from '../openapi.ts'
import { sessionParams } from '../schemas.ts'

const after = z.coerce.number().int().min(-1)

const events = createRoute({
  method: 'get',
  path: '/v1/sessions/{id}/events',
  summary: 'Journal entries after a sequence, as a page or followed live',
  description:
    'With `Accept: text/event-stream` the answer follows the session until it ends; `Last-Event-ID` or `after` resumes.',
  request: {
    params: sessionParams,
    query: z.strictObject({
      after: after.default(-1),
      limit: z.coerce
        .number()
        .int()
        .min(1)
        .max(limits.eventsPageSize.max)
        .default(limits.eventsPageSize.default),
      types: z.string().optional(),
    }),
  },
  responses: {
    200: {
      description: 'A page; `next_after` goes into the next call’s `after`',
      content: {
        'application/json': {
          schema: z.object({ data: z.array(entrySchema), next_after: z.number().int(), more: z.boolean() }),
        },
        'text/event-stream': { schema: z.string() },
      },
    },
    204: { description: 'The session has ended and there is nothing behind the cursor to follow' },
    ...problems,
  },
})

const verify = createRoute({
  method: 'get',
  path: '/v1/sessions/{id}/journal/verify',
  summary: 'Prove that the journal is unbroken and folds to the session',
  request: { params: sessionParams },
  responses: {
    200: answers(
      z.object({
        ok: z.boolean(),
        entries: z.number().int(),
        head: headSchema,
        problem: z.object({ sequence: z.number().int(), message: z.string() }).optional(),
      }),
      'The finding',
    ),
    ...problems,
  },
})

const wanted = (types: string | undefined) => {
  const names = types ? new Set(types.split(',').map((name) => name.trim())) : null
  return (entry: Entry) => names === null || names.has(entry.type)
}

/** The cursor that a client resumes from; the header of a reconnecting stream wins over the query. */
const cursor = (header: string | undefined, query: number): number => {
  if (header === undefined || header === '') return query
  const parsed = after.safeParse(header)
  if (!parsed.success)
    throw new GatehouseError('invalid_request', 'Last-Event-ID has to be the sequence of an entry')
  return parsed.data
}

const requireWithin = (item: SessionItem, from: number): void => {
  if (from > item.journal_head.sequence) {
    const message = `the journal of ${item.id} ends at ${item.journal_head.sequence}; ${from} lies beyond it`
    throw new GatehouseError('invalid_request', message, { errors: [{ path: 'after', message }] })
  }
}

export const journalRoutes = (app: OpenAPIHono<Env>, platform: Platform): void => {
  const load = (c: { get: (name: 'principal') => Env['Variables']['principal'] }, id: string) =>
    drained(platform, { team: person(c.get('principal'), 'viewer').team, id })

  app.openapi(events, async (c) => {
    const query = c.req.valid('query')
    const item = await load(c, c.req.valid('param').id)
    const from = cursor(c.req.header('last-event-id'), query.after)
    requireWithin(item, from)
    const matching = wanted(query.types)
    if (/\btext\/event-stream\b/.test(c.req.header('accept') ?? '')) {
      // The one answer at which an event source does not connect again.
      if (isTerminal(item.document.state) && from >= item.journal_head.sequence) return c.body(null, 204)
      return streamSSE(c, (sse) => follow(platform, item, from, matching, sse))
    }
    const entries = await platform.journals.after(item, from, query.limit)
    const last = entries.at(-1)?.sequence ?? from
    return c.json(
      { data: entries.filter(matching), next_after: last, more: last < item.journal_head.sequence },
      200,
    )
  })

  app.openapi(verify, async (c) => {
    const { team } = person(c.get('principal'), 'viewer')
    return c.json(await proveJournal(platform, { team, id: c.req.valid('param').id }), 200)
  })
}
