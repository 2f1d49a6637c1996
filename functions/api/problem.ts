import type { Context } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { type ErrorCode, errorCodes, type FieldError, GatehouseError } from '../../lib/errors.ts'
import { isPassing } from '../../lib/store/service-errors.ts'
import { visible } from '../../lib/text/visible.ts'
import type { Env } from './env.ts'
import { problemSchema } from './schemas.ts'

const shown = ({ path, message }: FieldError): FieldError => ({
  path: visible(path),
  message: visible(message),
})

/** The answer to an error (RFC 9457) in its parts. Says nothing internal. */
export const problemAnswer = (error: GatehouseError, requestId: string) => {
  const { status, title } = errorCodes[error.code]
  const body = problemSchema.parse({
    type: `urn:gatehouse:problem:${error.code}`,
    title,
    status,
    detail: visible(error.message),
    code: error.code,
    request_id: requestId,
    ...(error.errors ? { errors: error.errors.map(shown) } : {}),
    ...error.extra,
  })
  const headers: Record<string, string> = {
    'content-type': 'application/problem+json',
    // The rest of a refused body is never read, so the connection is good for nothing more.
    ...(status === 413 ? { connection: 'close' } : {}),
    ...(status === 401 ? { 'www-authenticate': 'Bearer' } : {}),
  }
  return { status, headers, body: JSON.stringify(body) }
}

/** The answer to an error within the API. */
export const problem = (c: Context<Env>, error: GatehouseError): Response => {
  const { status, headers, body } = problemAnswer(error, c.get('requestId'))
  return c.body(body, status, headers)
}

const httpCodes: Record<number, ErrorCode> = {
  400: 'invalid_json',
  404: 'not_found',
  413: 'payload_too_large',
  415: 'unsupported_media_type',
}

/** Turns whatever was thrown into the error that the caller is told; `unavailable` when a service below has no
 * room or time, `internal` for what we did not foresee. */
export const toGatehouseError = (error: unknown): GatehouseError => {
  if (error instanceof GatehouseError) return error
  if (error instanceof HTTPException) {
    const code = httpCodes[error.status]
    if (code) return new GatehouseError(code, error.message)
  }
  if (isPassing(error))
    return new GatehouseError(
      'unavailable',
      'The storage can’t take this now: send the same call again; on one machine, look whether the disk of the data folder is full.',
      { cause: error },
    )
  return new GatehouseError(
    'internal',
    'The request could not be handled; the request id finds it in the log.',
    { cause: error },
  )
}
