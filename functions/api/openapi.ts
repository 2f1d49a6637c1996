import { z } from '@hono/zod-openapi'
import type { Role } from '../../lib/team/roles.ts'
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
  500: problem('Something went wrong here'),
  503: problem('Not now; the same call may be sent again'),
  401: problem('No valid token'),
  403: problem('The token’s role is too small'),
  404: problem('Not there, or another team’s'),
  409: problem('Decided already, moved on, or in progress'),
  412: problem('If-Match names an older version'),
  422: problem('The request does not validate'),
} as const

/** The problem answers that a call with a body can give. */
export const bodyProblems = {
  ...problems,
  400: problem('The body is not JSON in UTF-8, or broke off'),
  413: problem('The body is too large'),
  415: problem('The body is not application/json'),
} as const

/** Who may call a route: a person of at least this role, or a session’s worker. It is held to before the body is read. */
export const needs = (role: Role | 'worker') => [{ token: [role] }]
