import type { z } from 'zod'
import { GatehouseError } from '../../lib/errors.ts'
import { firstBytes } from '../../lib/text/shorten.ts'

/** The body as JSON, whatever type it says it has, so that a plain `curl -d` will do; an empty one is `{}`. */
export const readJson = async (request: Request, most: number): Promise<unknown> => {
  const body = await bounded(request, most)
  if (body.trim() === '') return {}
  try {
    return JSON.parse(body)
  } catch (error) {
    throw new GatehouseError('invalid_json', error instanceof Error ? error.message : 'not JSON')
  }
}

const bounded = async (request: Request, most: number): Promise<string> => {
  const refuse = () => new GatehouseError('payload_too_large', `a body may hold ${most} bytes`)
  if (Number(request.headers.get('content-length') ?? 0) > most) throw refuse()
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of request.body ?? []) {
    size += chunk.length
    if (size > most) throw refuse()
    chunks.push(chunk)
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks))
  } catch (cause) {
    throw new GatehouseError('invalid_json', 'the body holds bytes that are not UTF-8', { cause })
  }
}

/** The value as a tool takes it; says of each place what is wrong with it. */
export const validated = <Schema extends z.ZodType>(schema: Schema, value: unknown): z.infer<Schema> => {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const problems = parsed.error.issues.map(({ path, message }) =>
    [path.join('.'), message].filter(Boolean).join(': '),
  )
  throw new GatehouseError('invalid_request', firstBytes(problems.join('; '), 1024))
}
