import { createMiddleware } from 'hono/factory'
import { GatehouseError } from '../../lib/errors.ts'
import type { Actor } from '../../lib/journal/entry.ts'
import type { Platform } from '../../lib/store/platform.ts'
import type { Principal } from '../../lib/store/tokens.ts'
import { allows, type Role } from '../../lib/team/roles.ts'
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

/** The caller as a person of at least a role; 403 otherwise. */
export const person = (principal: Principal, needed: Role): Person => {
  if (principal.kind !== 'person')
    throw new GatehouseError('forbidden', 'a worker’s token is good for the worker protocol only')
  if (!allows(principal.role, needed)) {
    throw new GatehouseError(
      'forbidden',
      `this call needs the role ${needed}; the token has ${principal.role}`,
    )
  }
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
