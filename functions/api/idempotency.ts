import { createHash } from 'node:crypto'
import { createMiddleware } from 'hono/factory'
import { errorCodes, GatehouseError } from '../../lib/errors.ts'
import { newId } from '../../lib/ids.ts'
import { limits } from '../../lib/limits.ts'
import type { StoredAnswer } from '../../lib/store/idempotency.ts'
import type { Platform } from '../../lib/store/platform.ts'
import type { Env } from './env.ts'
import { holdKey } from './held-key.ts'
import { toGatehouseError } from './problem.ts'

const keyPattern = new RegExp(`^[\\x21-\\x7e]{1,${limits.idempotencyKey}}$`)
const keptHeaders = ['content-type', 'location', 'etag'] as const

const toStore = async (response: Response): Promise<StoredAnswer> => {
  const headers: Record<string, string> = {}
  for (const name of keptHeaders) {
    const value = response.headers.get(name)
    if (value !== null) headers[name] = value
  }
  return { status: response.status, headers, body: await response.clone().text() }
}

/**
 * What becomes of the key. An answer is the call's last word; a refusal that wrote nothing gives the key back, for a
 * corrected repeat; after a fault of ours nobody knows what was written, so only the same call may go on with it.
 */
const outcomeOf = (error: unknown): 'final' | 'refused' | 'unknown' => {
  if (error === undefined) return 'final'
  const { code, status } = toGatehouseError(error)
  if (code === 'already_decided') return 'final'
  return status >= 500 || errorCodes[code].remedy === 'transient' ? 'unknown' : 'refused'
}

/**
 * Runs a POST that creates or decides once for each Idempotency-Key (API.md, Conventions). The `subjectId` it sets is
 * the id of what the call creates; the repeat of a call that died in the middle gets the first one's.
 */
export const idempotency = (platform: Platform) =>
  createMiddleware<Env>(async (c, next) => {
    const key = c.req.header('idempotency-key')
    const fresh = newId('ses')
    if (c.req.method !== 'POST' || key === undefined) {
      c.set('subjectId', fresh)
      return next()
    }
    if (!keyPattern.test(key)) {
      const message = `has to be 1 to ${limits.idempotencyKey} printable characters`
      throw new GatehouseError('invalid_request', `Idempotency-Key ${message}`, {
        errors: [{ path: 'Idempotency-Key', message }],
      })
    }
    const principal = c.get('principal')
    const who = principal.kind === 'person' ? principal.principal : principal.worker_id
    const request = JSON.stringify([who, c.req.path, await c.req.text()])
    const fingerprint = createHash('sha256').update(request).digest('hex')
    const { team } = principal
    const claim = await platform.idempotency.claim(team, key, fingerprint, fresh)
    if (claim.answer) {
      const { status, headers, body } = claim.answer
      const replayed = { ...headers, 'idempotency-replayed': 'true' }
      return c.newResponse(body, new Response(null, { status, headers: replayed }))
    }
    c.set('subjectId', claim.subjectId)
    const held = holdKey(platform, team, key, claim)
    await next()
    const last = await held.end()
    const outcome = outcomeOf(c.error)
    if (outcome === 'refused') await platform.idempotency.release(team, key, last)
    else if (outcome === 'unknown') await platform.idempotency.reopen(team, key, fingerprint, last)
    else await platform.idempotency.store(team, key, fingerprint, claim.subjectId, await toStore(c.res))
  })
