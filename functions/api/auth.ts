import type { OpenAPIHono } from '@hono/zod-openapi'
import { createMiddleware } from 'hono/factory'
import { matchedRoutes } from 'hono/route'
import { GatehouseError } from '../../lib/errors.ts'
import type { Actor } from '../../lib/journal/entry.ts'
import type { Platform } from '../../lib/store/platform.ts'
import type { Principal } from '../../lib/store/tokens.ts'
import { allows, type Role, roleSchema } from '../../lib/team/roles.ts'
import type { Env } from './env.ts'

const bearer = /^Bearer +(\S+) *$/i

/** Finds out whom the bearer token stands for; 401 when nobody. */
export const authenticate = (platform: Platform) =>
  createMiddleware<Env>(async (c, next) => {
    const secret = bearer.exec(c.req.header('authorization') ?? '')?.[1]
    const principal = secret ? await platform.tokens.find(secret) : null
    if (!principal)
      throw new GatehouseError(
        'unauthenticated',
        'send “Authorization: Bearer gh_…” with a token that is known and has not expired',
      )
    c.set('principal', principal)
    await next()
  })

export type Person = Extract<Principal, { kind: 'person' }>
export type WorkerPrincipal = Extract<Principal, { kind: 'worker' }>

/** The caller as a person; 403 otherwise. Which role it takes is said by the route (`needs`). */
export const person = (principal: Principal): Person => {
  if (principal.kind !== 'person')
    throw new GatehouseError('forbidden', 'a worker’s token is good for the worker protocol only')
  return principal
}

/** The caller as the worker of one session; 403 otherwise. */
export const worker = (principal: Principal): WorkerPrincipal => {
  if (principal.kind !== 'worker')
    throw new GatehouseError('forbidden', 'this call belongs to the worker protocol')
  return principal
}

export const actorOf = (principal: Principal): Actor =>
  principal.kind === 'person'
    ? { kind: 'person', id: principal.principal }
    : { kind: 'worker', id: principal.worker_id }

/** Throws `forbidden` for a person of a smaller role. */
export const requireRole = ({ role }: Person, needed: Role): void => {
  if (!allows(role, needed))
    throw new GatehouseError('forbidden', `this call needs the role ${needed}; the token has ${role}`)
}

/**
 * Holds the caller to what the route says it needs, before anything of the call is read. A route that says nothing can
 * be called by nobody.
 */
export const authorise = (app: OpenAPIHono<Env>) => {
  const needed = new Map<string, string>()
  const read = () => {
    for (const definition of app.openAPIRegistry.definitions)
      if (definition.type === 'route') {
        const { method, path, security } = definition.route
        const [role] = security?.[0]?.token ?? []
        if (role !== undefined)
          needed.set(`${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`, role)
      }
  }
  return createMiddleware<Env>(async (c, next) => {
    const route = matchedRoutes(c).find(({ method }) => method !== 'ALL')
    if (route) {
      if (needed.size === 0) read()
      const role = needed.get(`${route.method} ${route.path}`)
      if (role === undefined)
        throw new GatehouseError('internal', `${route.path} does not say who may call it`)
      if (role === 'worker') worker(c.get('principal'))
      else requireRole(person(c.get('principal')), roleSchema.parse(role))
    }
    await next()
  })
}
