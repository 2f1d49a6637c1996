import { createMiddleware } from 'hono/factory'
import type { z } from 'zod'
import { type FieldError, GatehouseError } from '../../lib/errors.ts'
import type { Env } from './env.ts'

/** Where a request does not validate, in the form of a problem answer. */
export const fieldErrors = (error: z.core.$ZodError): FieldError[] =>
  error.issues.flatMap((issue) => {
    const path = issue.path.map(String).join('.')
    return issue.code === 'unrecognized_keys'
      ? issue.keys.map((key) => ({
          path: [path, key].filter(Boolean).join('.'),
          message: 'is not a known field',
        }))
      : [{ path, message: issue.message }]
  })

/** A POST carries a JSON object; one without a body counts as an empty one. */
export const requireJson = createMiddleware<Env>(async (c, next) => {
  if (c.req.method === 'POST') {
    const type = c.req.header('content-type') ?? ''
    const text = await c.req.text()
    if (text !== '' && !/^application\/json\b/i.test(type)) {
      throw new GatehouseError('unsupported_media_type', 'send the body as application/json')
    }
    if (text === '') throw new GatehouseError('invalid_json', 'the body is empty; it has to be a JSON object')
    try {
      JSON.parse(text)
    } catch (error) {
      throw new GatehouseError('invalid_json', error instanceof Error ? error.message : 'not JSON')
    }
  }
  await next()
})
