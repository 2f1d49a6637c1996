import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { GatehouseError } from '../../../lib/errors.ts'
import { continuation } from '../../../lib/session/continuation.ts'
import type { Legacy } from '../../../lib/session/creation.ts'
import { needsYou } from '../../../lib/session/gates.ts'
import type { Change, SessionItem } from '../../../lib/session/item.ts'
import { continueSessionSchema, startSessionSchema } from '../../../lib/session/start.ts'
import { stateSchema } from '../../../lib/session/states.ts'
import { carryOut } from '../../../lib/store/effects.ts'
import { objectKey } from '../../../lib/store/keys.ts'
import type { Platform } from '../../../lib/store/platform.ts'
import { person } from '../auth.ts'
import { created } from '../creation.ts'
import type { Env } from '../env.ts'
import { answers, bodyProblems, jsonBody, needs, problems } from '../openapi.ts'
import { pageQuery, sessionParams, sessionSchema } from '../schemas.ts'
import { fullSessionView, queueOf, sessionView } from '../views.ts'

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
      z.object({ data: z.array(sessionSchema), next_cursor: z.string().nullable() }),
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

const matches = (query: Query) => {
  const [name, value] = query.label?.split(/=(.*)/s, 2) ?? []
  return ({ document }: SessionItem) =>
    (query.state === undefined || document.state === query.state) &&
    (query.repo === undefined || document.repo === query.repo) &&
    (query.needs_you === undefined || (needsYou(document) !== null) === (query.needs_you === 'true')) &&
    (name === undefined || document.labels[name] === value)
}

/** Pages that one call reads at most; a filter that passes over more answers with what it found and where it got to. */
const maxPages = 20

/** Reads on until a page is full: a filter must not hide sessions that lie behind the ones it passes over. */
const filteredPage = async (platform: Platform, team: string, query: Query) => {
  const matching = matches(query)
  const found = []
  let before = query.cursor ?? null
  for (let pages = 0; pages < maxPages; pages++) {
    const { items, more } = await platform.sessions.page(team, {
      limit: query.limit,
      before,
      needsYou: query.needs_you === 'true',
    })
    for (const item of items) {
      before = item.id
      if (!matching(item)) continue
      found.push(item)
      if (found.length === query.limit) return { found, next: item.id }
    }
    if (!more || items.length === 0) return { found, next: null }
  }
  return { found, next: before }
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
    const { found, next } = await filteredPage(platform, who.team, c.req.valid('query'))
    const data = await Promise.all(
      found.map(async (item) => sessionView(item, await queueOf(platform, item))),
    )
    return c.json({ data, next_cursor: next }, 200)
  })

  app.openapi(get, async (c) => {
    const who = person(c.get('principal'))
    const item = await platform.sessions.require({ team: who.team, id: c.req.valid('param').id })
    return c.json(await fullSessionView(platform, item), 200, { etag: `"${item.version}"` })
  })
}
