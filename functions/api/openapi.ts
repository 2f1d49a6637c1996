import { z } from '@hono/zod-openapi'
import { problemSchema } from './schemas.ts'

/** A JSON answer in a route's description. */
export const answers = <Schema extends z.ZodType>(schema: Schema, description: string) => ({
  description,
  content: { 'application/json': { schema } },
})

/** An answer of bytes in a route's description. */
export const bytes = <Type extends string>(type: Type, description: string) => ({
  description,
  content: { [type]: { schema: z.string() } },
})

/** A required JSON body in a route's description. */
export const jsonBody = <Schema extends z.ZodType>(schema: Schema) => ({
  required: true,
  content: { 'application/json': { schema } },
})

const problem = (description: string) => ({
  description,
  content: { 'application/problem+json': { schema: problemSchema } },
})

/** The problem answers that any call can give. */
export const problems = {
  401: problem('No valid token'),
  403: problem('The token’s role is too small'),
  404: problem('Not there, or another team’s'),
  409: problem('Decided already, moved on, or in progress'),
  412: problem('If-Match names an older version'),
  422: problem('The request does not validate'),
} as const
