import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi'
import { GatehouseError } from '../../../lib/errors.ts'
import { type Entry, entrySchema, headSchema } from '../../../lib/journal/entry.ts'
import { isFactType } from '../../../lib/journal/facts.ts'
import { limits } from '../../../lib/limits.ts'
import type { SessionItem } from '../../../lib/session/item.ts'
import type { Platform } from '../../../lib/store/platform.ts'
import { proveJournal } from '../../../lib/store/proof.ts'
import { createTail, isOver } from '../../../lib/store/tail.ts'
import { person } from '../auth.ts'
import { cursorOf, cursorPattern, readCursor } from '../cursor.ts'
import type { Env } from '../env.ts'
import { follow } from '../follow.ts'
import type { Log } from '../log.ts'
import { answers, needs, problems } from '../openapi.ts'
import { sessionParams } from '../schemas.ts'
import { streamOf } from '../stream.ts'

const namesOf = (types: string | undefined): string[] =>
  types ? types.split(',').map((name) => name.trim()) : []

const events = createRoute({
  method: 'get',
  security: needs('viewer'),
  path: '/v1/sessions/{id}/events',
  summary: 'Journal entries after a sequence, as a page or followed live',
  description:
    'With `Accept: text/event-stream` the answer follows the session: `id` is an entry’s sequence, `event` its type, ' +
    '`data` the entry. `Last-Event-ID`, which wins, or `after` resumes behind an entry. The stream ends after the ' +
    'entry that brought the session to a terminal state. An event `resync`, which has no id, says by `code` and ' +
    '`message` why the stream can’t go on; one that ends otherwise is resumed by its last id.',
  request: {
    params: sessionParams,
    query: z.strictObject({
      after: z
        .string()
        .optional()
        .openapi({
          description:
            'The sequence of the last entry that the client has, -1 for none; or `<session id>:<sequence>`, which is ' +
            'refused for any other session',
          pattern: cursorPattern.source,
          default: '-1',
          example: '41',
        }),
      limit: z.coerce
        .number()
        .int()
        .min(1)
        .max(limits.eventsPageSize.max)
        .default(limits.eventsPageSize.default),
      types: z
        .string()
        .optional()
        .refine(
          (types) => namesOf(types).every(isFactType),
          'has to be types of entries, with commas between',
        )
        .describe('Only entries of these types, with commas between; `limit` counts also what is left out'),
    }),
  },
  responses: {
    200: {
      description:
        'A page; `next_after` or `next_cursor` goes into the next call’s `after`, also to ask later for what came since; ' +
        '`next_cursor` is null where there is nothing more for now',
      content: {
        'application/json': {
          schema: z.object({
            data: z.array(entrySchema),
            next_after: z.number().int(),
            next_cursor: z.string().nullable(),
            more: z.boolean(),
          }),
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
  security: needs('viewer'),
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
  const names = types ? new Set(namesOf(types)) : null
  return (entry: Entry) => names === null || names.has(entry.type)
}

const isStreamAsked = (accept: string | undefined): boolean => /\btext\/event-stream\b/.test(accept ?? '')

/** At most `limit` entries behind `from`, none beyond the head, so that `more` is true of one moment. */
const page = async ({ journals }: Platform, item: SessionItem, from: number, limit: number) => {
  const head = item.journal_head.sequence
  const count = Math.min(limit, head - from)
  const data = count > 0 ? await journals.after(item, from, count) : []
  if (data.length < count)
    throw new GatehouseError('journal_damaged', `entry ${from + data.length + 1} of ${item.id} is missing`)
  const last = from + data.length
  const more = last < head
  return { data, next_after: last, next_cursor: more ? cursorOf(item, last) : null, more }
}

export const journalRoutes = (app: OpenAPIHono<Env>, platform: Platform, log: Log): void => {
  const tail = createTail(platform)
  const load = (c: { get: (name: 'principal') => Env['Variables']['principal'] }, id: string) =>
    tail.now({ team: person(c.get('principal')).team, id })

  app.openapi(events, async (c) => {
    const { after, types, limit } = c.req.valid('query')
    const item = await load(c, c.req.valid('param').id)
    const from = readCursor(item, { header: c.req.header('last-event-id'), query: after })
    const matching = wanted(types)
    if (!isStreamAsked(c.req.header('accept'))) {
      const { data, ...rest } = await page(platform, item, from, limit)
      return c.json({ data: data.filter(matching), ...rest }, 200)
    }
    // The one answer at which an event source does not connect again.
    if (isOver(item, from)) return c.body(null, 204)
    const onFault = (error: unknown) =>
      log({
        level: 'error',
        message: `the stream of ${item.id} broke off`,
        request_id: c.get('requestId'),
        error: error instanceof Error ? (error.stack ?? error.message) : String(error),
      })
    const body = streamOf(
      (signal) => follow({ clock: platform.clock, tail }, item, { from, wanted: matching, signal }),
      onFault,
    )
    return c.newResponse(body, 200, {
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache',
      // A proxy in between would keep events back until it has a buffer full of them.
      'x-accel-buffering': 'no',
    })
  })

  app.openapi(verify, async (c) => {
    const { team } = person(c.get('principal'))
    return c.json(await proveJournal(platform, { team, id: c.req.valid('param').id }), 200)
  })
}
