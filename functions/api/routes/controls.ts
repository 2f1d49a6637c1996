import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi'
import { answer, cancel, resume, steer } from '../../../lib/session/controls.ts'
import type { Platform } from '../../../lib/store/platform.ts'
import { decideAs, decided, decision } from '../decide.ts'
import type { Env } from '../env.ts'
import { answers, bodyProblems, jsonBody, needs } from '../openapi.ts'
import {
  answerSchema,
  cancelSchema,
  resumeSchema,
  sessionParams,
  sessionSchema,
  steerSchema,
} from '../schemas.ts'

const steering = createRoute({
  method: 'post',
  security: needs('operator'),
  path: '/v1/sessions/{id}/steer',
  summary: 'Give guidance; accepted now, applied when an engine is given it',
  request: { params: sessionParams, body: jsonBody(steerSchema) },
  responses: {
    202: answers(z.object({ status: z.literal('accepted') }), 'The guidance is kept'),
    ...bodyProblems,
  },
})

const routes = {
  answer: decision('answer', 'operator', 'Answer the running engine’s question', answerSchema, sessionSchema),
  resume: decision('resume', 'operator', 'Set a stopped session going again', resumeSchema, sessionSchema),
  cancel: decision(
    'cancel',
    'operator',
    'Cancel; a second cancel is no error',
    cancelSchema,
    z.object({ session: sessionSchema, already_terminal: z.boolean() }),
  ),
}

/** The calls by which people take part in a session that is under way, or end it. */
export const controlRoutes = (app: OpenAPIHono<Env>, platform: Platform): void => {
  app.openapi(steering, async (c) => {
    await decideAs(c, platform, c.req.valid('param').id, (now, actor) =>
      steer(now, c.req.valid('json').text, actor),
    )
    return c.json({ status: 'accepted' as const }, 202)
  })

  app.openapi(routes.answer, async (c) => {
    const item = await decideAs(c, platform, c.req.valid('param').id, (now, actor) =>
      answer(now, c.req.valid('json'), actor),
    )
    return c.json(decided(c, item), 200)
  })

  app.openapi(routes.resume, async (c) => {
    const item = await decideAs(c, platform, c.req.valid('param').id, (now, actor) =>
      resume(now, c.req.valid('json').until, actor, platform.clock()),
    )
    return c.json(decided(c, item), 200)
  })

  app.openapi(routes.cancel, async (c) => {
    let cancelled = false
    const item = await decideAs(c, platform, c.req.valid('param').id, (now, actor) => {
      const change = cancel(now, c.req.valid('json').reason, actor)
      cancelled = change !== null
      return change
    })
    return c.json({ session: decided(c, item), already_terminal: !cancelled }, 200)
  })
}
