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

const deepest = 64

/** Text that no store and no command line takes as it is: unpaired surrogates and NUL. */
const unfitText = (text: string): string | null => {
  if (text.includes('\0')) return 'has to be free of NUL'
  return text.isWellFormed() ? null : 'has to be well-formed Unicode'
}

const unfit = (value: unknown, path: readonly string[]): FieldError[] => {
  const at = path.join('.')
  if (typeof value === 'string') {
    const message = unfitText(value)
    return message === null ? [] : [{ path: at, message }]
  }
  if (typeof value !== 'object' || value === null) return []
  if (path.length >= deepest) return [{ path: at, message: 'is nested too deeply' }]
  return Object.entries(value).flatMap(([key, inner]) => [
    ...(unfitText(key) === null ? [] : [{ path: at, message: 'has a key that is not plain text' }]),
    ...unfit(inner, [...path, key]),
  ])
}

/** A POST carries a JSON object; one without a body counts as an empty one. */
export const requireJson = createMiddleware<Env>(async (c, next) => {
  if (c.req.method === 'POST') {
    const type = c.req.header('content-type') ?? ''
    const text = await c.req.text()
    if (text !== '' && !/^application\/json\b/i.test(type)) {
      throw new GatehouseError('unsupported_media_type', 'send the body as application/json')
    }
    if (text === '') throw new GatehouseError('invalid_json', 'the body is empty; it has to be a JSON object')
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch (error) {
      throw new GatehouseError('invalid_json', error instanceof Error ? error.message : 'not JSON')
    }
    const errors = unfit(value, [])
    if (errors.length > 0)
      throw new GatehouseError('invalid_request', 'the request does not validate', { errors })
  }
  await next()
})
