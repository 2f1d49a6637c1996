import type { Context } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { createMiddleware } from 'hono/factory'
import { type FieldError, GatehouseError } from '../../lib/errors.ts'
import { limits } from '../../lib/limits.ts'
import type { Env } from './env.ts'

const deepest = limits.record.lineDepth

/** Text that no store and no command line takes as it is: unpaired surrogates and NUL. */
const unfitText = (text: string): string | null => {
  if (text.includes('\0')) return 'has to be free of NUL'
  return text.isWellFormed() ? null : 'has to be well-formed Unicode'
}

/** DynamoDB keeps no whole number that JavaScript would round, and nothing far below 1e-130. */
const unfitNumber = (value: number): string | null =>
  Math.abs(value) > Number.MAX_SAFE_INTEGER || (value !== 0 && Math.abs(value) < 1e-100)
    ? 'is too large or too small a number to be kept'
    : null

const unfitKey = (key: string, plainText: boolean): string[] => {
  if (key === '__proto__') return ['has the key __proto__, which can’t be kept']
  const text = plainText ? unfitText(key) : null
  return text === null ? [] : [`has a key that ${text}`]
}

const unfit = (value: unknown, path: readonly string[], plainText: boolean): FieldError[] => {
  const at = path.join('.')
  if (typeof value === 'string' || typeof value === 'number') {
    const message = typeof value === 'number' ? unfitNumber(value) : plainText ? unfitText(value) : null
    return message === null ? [] : [{ path: at, message }]
  }
  if (typeof value !== 'object' || value === null) return []
  if (path.length >= deepest) return [{ path: at, message: 'is nested too deeply' }]
  return Object.entries(value).flatMap(([key, inner]) => [
    // Object libraries take this name for the prototype, and the value would be lost without a word.
    ...unfitKey(key, plainText).map((message) => ({ path: at, message })),
    ...unfit(inner, [...path, key], plainText),
  ])
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

const bounded = bodyLimit({
  maxSize: limits.body,
  onError: () => {
    throw new GatehouseError('payload_too_large', `a body may hold ${limits.body} bytes`)
  },
})

/** A body that breaks off is its sender’s own error. */
const whole = async <Value>(reading: Promise<Value>): Promise<Value> => {
  try {
    return await reading
  } catch (cause) {
    if (cause instanceof GatehouseError) throw cause
    throw new GatehouseError('invalid_json', 'the body broke off before its end', { cause })
  }
}

/** Keeps a body to the size that one may have. */
export const limitBody = createMiddleware<Env>(async (c, next) => {
  // Apart from what comes after it, whose errors say nothing of how the body was read.
  await whole(Promise.resolve(bounded(c, async () => {})))
  await next()
})

/** The text of a body; bytes that are no UTF-8 would be taken for other characters. */
const bodyText = async (c: Context<Env>): Promise<string> => {
  const bytes = await whole(c.req.arrayBuffer())
  try {
    return utf8.decode(bytes)
  } catch (cause) {
    throw new GatehouseError('invalid_json', 'the body holds bytes that are not UTF-8', { cause })
  }
}

/**
 * A POST carries JSON of values that can be kept as they are. `plainText` refuses text that can't; a worker reports what
 * it found, and half a character in it is no reason to lose the report.
 */
export const requireJson = ({ plainText }: { plainText: boolean }) =>
  createMiddleware<Env>(async (c, next) => {
    if (c.req.method === 'POST') {
      const type = c.req.header('content-type') ?? ''
      const text = await bodyText(c)
      if (text !== '' && !/^application\/json\b/i.test(type)) {
        throw new GatehouseError('unsupported_media_type', 'send the body as application/json')
      }
      if (text === '')
        throw new GatehouseError('invalid_json', 'the body is empty; it has to be a JSON object')
      let value: unknown
      try {
        value = JSON.parse(text)
      } catch (error) {
        throw new GatehouseError('invalid_json', error instanceof Error ? error.message : 'not JSON')
      }
      const errors = unfit(value, [], plainText)
      if (errors.length > 0)
        throw new GatehouseError('invalid_request', 'the request does not validate', { errors })
    }
    await next()
  })
