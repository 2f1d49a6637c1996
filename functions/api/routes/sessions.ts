import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi'
import { contractHash } from '../../../lib/contract/hash.ts'
import { validateContract } from '../../../lib/contract/validate.ts'
import { resolveEngine } from '../../../lib/engine/requested.ts'
import { GatehouseError } from '../../../lib/errors.ts'
import type { Change } from '../../../lib/session/item.ts'
import { type StartSession, startSessionSchema, unavailableOptions } from '../../../lib/session/start.ts'
import { stateSchema } from '../../../lib/session/states.ts'
import { carryOut } from '../../../lib/store/effects.ts'
import type { Platform } from '../../../lib/store/platform.ts'
import { parseRepository } from '../../../lib/workspace/repository-address.ts'
import { actorOf, type Person, person } from '../auth.ts'
import type { Env } from '../env.ts'
import { answers, jsonBody, problems } from '../openapi.ts'
import { pageQuery, sessionParams, sessionSchema } from '../schemas.ts'
import { fullSessionView, sessionView } from '../views.ts'

/** The facts of a new session; refuses what can't be honoured, before anything is written. */
const created = (platform: Platform, id: string, start: StartSession, who: Person): Change => {
  const missing = unavailableOptions(start)
  if (missing.length > 0)
    throw new GatehouseError('not_available', missing.map(({ message }) => message).join('; '), {
      errors: missing,
    })
  const repository = parseRepository(start.repo, { allowLocal: platform.policy.allowLocalRepositories })
  const { engine, reason } = resolveEngine(start.engine, { engine_command: start.engine_command })
  const errors = start.contract ? validateContract(start.contract, { provenance: 'operator_supplied' }) : []
  if (errors.length > 0) {
    const at = errors.map(({ path, message }) => ({ path: `contract.${path}`, message }))
    throw new GatehouseError('invalid_contract', 'the contract is not valid', { errors: at })
  }
  return {
    actor: actorOf(who),
    facts: [
      {
        type: 'session_created',
        data: {
          id,
          team: who.team,
          repo: repository.url,
          intent: start.intent,
          requested_base: start.base,
          requested_engine: start.engine,
          engine,
          engine_command: start.engine_command,
          mode: start.mode,
          verify: start.verify,
          contract: start.contract,
          contract_hash: start.contract ? contractHash(start.contract) : null,
          contract_provenance: start.contract ? 'operator_supplied' : null,
          max_iterations: start.max_iterations,
          repair_invokes: start.repair_invokes,
          transient_retries: start.transient_retries,
          max_wall_secs: start.max_wall_secs,
          delivery: { kind: 'branch', branch: null },
          labels: start.labels,
          requested_by: who.principal,
        },
      },
      { type: 'engine_selected', data: { engine, reason } },
    ],
  }
}

const create = createRoute({
  method: 'post',
  path: '/v1/sessions',
  summary: 'Start a session on a repository',
  request: { body: jsonBody(startSessionSchema) },
  responses: { 201: answers(sessionSchema, 'The session, which has started'), ...problems },
})

const list = createRoute({
  method: 'get',
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
  path: '/v1/sessions/{id}',
  summary: 'Read a session',
  request: { params: sessionParams },
  responses: { 200: answers(sessionSchema, 'The session'), ...problems },
})

type Query = z.infer<typeof list.request.query>

const matches = (query: Query) => {
  const [name, value] = query.label?.split(/=(.*)/s, 2) ?? []
  return ({
    document,
  }: {
    document: { state: string; repo: string; gate: unknown; labels: Record<string, string> }
  }) =>
    (query.state === undefined || document.state === query.state) &&
    (query.repo === undefined || document.repo === query.repo) &&
    (query.needs_you === undefined || (document.gate !== null) === (query.needs_you === 'true')) &&
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

export const sessionRoutes = (app: OpenAPIHono<Env>, platform: Platform): void => {
  app.openapi(create, async (c) => {
    const who = person(c.get('principal'), 'operator')
    const id = c.get('subjectId')
    const { item } = await platform.sessions.create(
      { team: who.team, id },
      created(platform, id, c.req.valid('json'), who),
    )
    const session = sessionView(await carryOut(platform, item))
    return c.json(session, 201, { location: `/v1/sessions/${id}`, etag: `"${session.version}"` })
  })

  app.openapi(list, async (c) => {
    const who = person(c.get('principal'), 'viewer')
    const { found, next } = await filteredPage(platform, who.team, c.req.valid('query'))
    return c.json({ data: found.map(sessionView), next_cursor: next }, 200)
  })

  app.openapi(get, async (c) => {
    const who = person(c.get('principal'), 'viewer')
    const item = await platform.sessions.require({ team: who.team, id: c.req.valid('param').id })
    return c.json(await fullSessionView(platform, item), 200, { etag: `"${item.version}"` })
  })
}
