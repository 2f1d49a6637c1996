import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi'
import { stepHistory, stepRunSchema } from '../../../lib/machine/history.ts'
import type { Platform } from '../../../lib/store/platform.ts'
import { person } from '../auth.ts'
import type { Env } from '../env.ts'
import { answers, needs, problems } from '../openapi.ts'
import { sessionParams } from '../schemas.ts'

const history = createRoute({
  method: 'get',
  security: needs('viewer'),
  path: '/v1/sessions/{id}/history',
  summary: 'The executions of a session and their steps',
  request: { params: sessionParams },
  responses: {
    200: answers(
      z.object({
        executions: z.array(
          z.object({
            name: z.string(),
            arn: z.string(),
            attempt: z.number().int(),
            status: z.string(),
            console_url: z.string(),
            steps: z.array(stepRunSchema),
          }),
        ),
      }),
      'Oldest execution first',
    ),
    ...problems,
  },
})

const consoleUrl = (arn: string): string => {
  const region = arn.split(':')[3] ?? ''
  return `https://${region}.console.aws.amazon.com/states/home?region=${region}#/v2/executions/details/${arn}`
}

export const historyRoutes = (app: OpenAPIHono<Env>, platform: Platform): void => {
  app.openapi(history, async (c) => {
    const { team } = person(c.get('principal'))
    const item = await platform.sessions.require({ team, id: c.req.valid('param').id })
    const attempts = Array.from({ length: item.runtime.attempt }, (_, index) => index + 1)
    const executions = await Promise.all(
      attempts.map(async (attempt) => {
        const name = `${item.id}-${attempt}`
        const arn = platform.machine.executionArn(name)
        const [status, events] = await Promise.all([
          platform.machine.status(arn),
          platform.machine.history(arn),
        ])
        return { name, arn, attempt, status, console_url: consoleUrl(arn), steps: stepHistory(events) }
      }),
    )
    return c.json({ executions: executions.filter(({ status }) => status !== 'MISSING') }, 200)
  })
}
