import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi'
import type { Env } from '../env.ts'
import { answers } from '../openapi.ts'

const healthz = createRoute({
  method: 'get',
  path: '/healthz',
  summary: 'Whether the service answers',
  security: [],
  responses: { 200: answers(z.object({ status: z.literal('ok'), version: z.string() }), 'It does') },
})

export const serviceRoutes = (app: OpenAPIHono<Env>, version: string): void => {
  app.openapi(healthz, (c) => c.json({ status: 'ok' as const, version }, 200))
}
