import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi'
import { digestIn } from '../../../lib/artifact-name.ts'
import { GatehouseError } from '../../../lib/errors.ts'
import { reviewBodySchema } from '../../../lib/session/protocol.ts'
import { drained } from '../../../lib/store/effects.ts'
import { isNamed } from '../../../lib/store/kept-files.ts'
import { objectKey } from '../../../lib/store/keys.ts'
import type { Platform } from '../../../lib/store/platform.ts'
import { person } from '../auth.ts'
import type { Env } from '../env.ts'
import { answers, needs, problems } from '../openapi.ts'
import { reviewSchema, sessionParams } from '../schemas.ts'
import { reviewView } from '../views.ts'

const review = createRoute({
  method: 'get',
  security: needs('viewer'),
  path: '/v1/sessions/{id}/review',
  summary: 'What an approval would bind',
  request: { params: sessionParams },
  responses: { 200: answers(reviewSchema, 'The review'), ...problems },
})

const diffSchema = z.object({
  review_id: z.string(),
  stat: reviewSchema.shape.stat,
  files: reviewBodySchema.shape.changed_paths,
})

const diff = createRoute({
  method: 'get',
  security: needs('viewer'),
  path: '/v1/sessions/{id}/diff',
  summary: 'The whole patch; as JSON, the changed files',
  request: { params: sessionParams },
  responses: {
    200: {
      description: 'The patch',
      content: { 'text/x-diff': { schema: z.string() }, 'application/json': { schema: diffSchema } },
    },
    ...problems,
  },
})

const artifact = createRoute({
  method: 'get',
  security: needs('viewer'),
  path: '/v1/sessions/{id}/artifacts/{name}',
  summary: 'Full output of a check and the like',
  request: { params: sessionParams.extend({ name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/) }) },
  responses: { 302: { description: 'Where the bytes are, for a while' }, ...problems },
})

export const reviewRoutes = (app: OpenAPIHono<Env>, platform: Platform): void => {
  const load = (c: { get: (name: 'principal') => Env['Variables']['principal'] }, id: string) =>
    platform.sessions.require({ team: person(c.get('principal')).team, id })

  app.openapi(review, async (c) => {
    const item = await load(c, c.req.valid('param').id)
    return c.json(await reviewView(platform, item), 200)
  })

  app.openapi(diff, async (c) => {
    const item = await load(c, c.req.valid('param').id)
    const { review_id, stat, changed_paths, patch_artifact } = await reviewView(platform, item)
    if (/\bapplication\/json\b/.test(c.req.header('accept') ?? '')) {
      return c.json({ review_id, stat, files: changed_paths }, 200)
    }
    const bytes = await platform.artifacts.stream(item, patch_artifact)
    return c.body(bytes, 200, { 'content-type': 'text/x-diff' })
  })

  app.openapi(artifact, async (c) => {
    const { id, name } = c.req.valid('param')
    const item = await load(c, id)
    const key = objectKey.artifact(item.team, item.id, name)
    const isThere = await platform.blobs.exists(key)
    if (!isThere && !(digestIn(name) && (await isNamed(platform, await drained(platform, item), name))))
      throw new GatehouseError('not_found', `session ${id} has no artifact ${name}`)
    await platform.artifacts.prove(item, name)
    return c.redirect(await platform.blobs.downloadUrl(key), 302)
  })
}
