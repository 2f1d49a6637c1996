import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi'
import { journalJsonSchema } from '../../../lib/journal/json-schema.ts'
import type { Env } from '../env.ts'
import { answers } from '../openapi.ts'

const healthz = createRoute({
  method: 'get',
  path: '/healthz',
  summary: 'Whether the service answers',
  security: [],
  responses: { 200: answers(z.object({ status: z.literal('ok'), version: z.string() }), 'It does') },
})

const journalSchema = createRoute({
  method: 'get',
  path: '/schemas/journal.json',
  summary: 'The JSON Schema of a line of a journal',
  security: [],
  responses: { 200: { description: 'A JSON Schema (2020-12) as application/schema+json' } },
})

export const serviceRoutes = (app: OpenAPIHono<Env>, version: string): void => {
  app.openapi(healthz, (c) => c.json({ status: 'ok' as const, version }, 200))
  app.openapi(journalSchema, (c) =>
    c.body(JSON.stringify(journalJsonSchema()), 200, { 'content-type': 'application/schema+json' }),
  )
}
