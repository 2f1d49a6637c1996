import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { GatehouseError } from '../../../lib/errors.ts'
import { continuation } from '../../../lib/session/continuation.ts'
import type { Legacy } from '../../../lib/session/creation.ts'
import type { Change } from '../../../lib/session/item.ts'
import { continueSessionSchema, startSessionSchema } from '../../../lib/session/start.ts'
import { stateSchema } from '../../../lib/session/states.ts'
import { carryOut } from '../../../lib/store/effects.ts'
import { objectKey } from '../../../lib/store/keys.ts'
import type { Platform } from '../../../lib/store/platform.ts'
import type { SessionFilter } from '../../../lib/store/session-pages.ts'
import { person } from '../auth.ts'
import { created } from '../creation.ts'
import type { Env } from '../env.ts'
import { answers, bodyProblems, jsonBody, needs, problems } from '../openapi.ts'
import { pageQuery, sessionParams, sessionSchema } from '../schemas.ts'
import { fullSessionView, queuesOf, sessionView } from '../views.ts'

type Id = { team: string; id: string }

const create = createRoute({
  method: 'post',
  security: needs('operator'),
  path: '/v1/sessions',
  summary: 'Start a session on a repository',
  request: { body: jsonBody(startSessionSchema) },
  responses: { 201: answers(sessionSchema, 'The session, which has started'), ...bodyProblems },
})

const proceed = createRoute({
  method: 'post',
  security: needs('operator'),
  path: '/v1/sessions/{id}/continue',
  summary: 'Start a session that goes on from an ended one',
  request: { params: sessionParams, body: jsonBody(continueSessionSchema) },
  responses: { 201: answers(sessionSchema, 'The new session, which has started'), ...bodyProblems },
})

const list = createRoute({
  method: 'get',
  security: needs('viewer'),
  path: '/v1/sessions',
  summary: 'List sessions, newest first',
  request: {
    query: pageQuery.extend({
      state: stateSchema.optional(),
      repo: z.string().optional(),
      needs_you: z.enum(['true', 'false']).optional(),
      label: z
        .string()
        .regex(/^[^=]+=.*$/, 'has to be name=value')
        .optional(),
    }),
  },
  responses: {
    200: answers(
      z.object({
        data: z.array(sessionSchema),
        /** Sessions of this page that are on record and can't be read; they are not in `data`. */
        damaged: z.array(z.string()),
        next_cursor: z.string().nullable(),
      }),
      'A page of sessions',
    ),
    ...problems,
  },
})

const get = createRoute({
  method: 'get',
  security: needs('viewer'),
  path: '/v1/sessions/{id}',
  summary: 'Read a session',
  request: { params: sessionParams },
  responses: { 200: answers(sessionSchema, 'The session'), ...problems },
})

type Query = z.infer<typeof list.request.query>

/** What a list is to hold, by the query. Pure. */
const filterOf = ({ state, repo, needs_you, label }: Query): SessionFilter => {
  const [name, value = ''] = label?.split(/=(.*)/s, 2) ?? []
  return {
    ...{ state, repo },
    needsYou: needs_you === undefined ? undefined : needs_you === 'true',
    label: name === undefined ? undefined : { name, value },
  }
}

/** Copies the unfinished work that a new session goes on from to where its own would be; a repeat copies the same. */
const takeOver = async (platform: Platform, from: Id, to: Id, { checkpoint }: Legacy): Promise<void> => {
  if (checkpoint?.bundle == null) return
  const [source, target] = [from, to].map(({ team, id }) =>
    objectKey.bundle(team, id, checkpoint.bundle ?? ''),
  )
  if (source && target && (await platform.blobs.copy(source, target))) return
  throw new GatehouseError('illegal_transition', `the retained work of session ${from.id} is gone`)
}

export const sessionRoutes = (app: OpenAPIHono<Env>, platform: Platform): void => {
  const begin = async (c: Context<Env>, change: Change, team: string) => {
    const id = c.get('subjectId')
    const { item } = await platform.sessions.create({ team, id }, change)
    const session = sessionView(await carryOut(platform, item))
    return c.json(session, 201, { location: `/v1/sessions/${id}`, etag: `"${session.version}"` })
  }

  app.openapi(create, async (c) => {
    const who = person(c.get('principal'))
    return begin(c, created(platform, c.get('subjectId'), c.req.valid('json'), who), who.team)
  })

  app.openapi(proceed, async (c) => {
    const who = person(c.get('principal'))
    const from = { team: who.team, id: c.req.valid('param').id }
    const to = { team: who.team, id: c.get('subjectId') }
    const { document } = await platform.sessions.require(from)
    const { start, legacy } = continuation(document, c.req.valid('json'))
    const change = created(platform, to.id, start, who, legacy)
    await takeOver(platform, from, to, legacy)
    return begin(c, change, who.team)
  })

  app.openapi(list, async (c) => {
    const who = person(c.get('principal'))
    const query = c.req.valid('query')
    const { items, damaged, next } = await platform.sessions.page(who.team, {
      ...{ limit: query.limit, before: query.cursor ?? null },
      filter: filterOf(query),
    })
    const places = await queuesOf(platform, who.team, items)
    return c.json(
      {
        data: items.map((item) => sessionView(item, places(item))),
        damaged: damaged.map(({ id }) => id),
        next_cursor: next,
      },
      200,
    )
  })

  app.openapi(get, async (c) => {
    const who = person(c.get('principal'))
    const item = await platform.sessions.require({ team: who.team, id: c.req.valid('param').id })
    return c.json(await fullSessionView(platform, item), 200, { etag: `"${item.version}"` })
  })
}
