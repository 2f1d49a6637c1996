import { createHash } from 'node:crypto'
import { createMiddleware } from 'hono/factory'
import { GatehouseError } from '../../lib/errors.ts'
import { newId } from '../../lib/ids.ts'
import { limits } from '../../lib/limits.ts'
import type { StoredAnswer } from '../../lib/store/idempotency.ts'
import type { Platform } from '../../lib/store/platform.ts'
import type { Env } from './env.ts'
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

/** Whether an answer is the call's last word. A refusal that wrote nothing gives the key back, for a corrected repeat. */
const isFinal = (error: unknown): boolean =>
  error === undefined || toGatehouseError(error).code === 'already_decided'

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
    const { subjectId, answer } = await platform.idempotency.claim(team, key, fingerprint, fresh)
    if (answer)
      return new Response(answer.body, {
        status: answer.status,
        headers: { ...answer.headers, 'idempotency-replayed': 'true' },
      })
    c.set('subjectId', subjectId)
    await next()
    if (isFinal(c.error))
      await platform.idempotency.store(team, key, fingerprint, subjectId, await toStore(c.res))
    else await platform.idempotency.release(team, key)
  })
