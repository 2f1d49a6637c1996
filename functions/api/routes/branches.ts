import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi'
import { idSchema } from '../../../lib/ids.ts'
import { branchSummarySchema } from '../../../lib/journal/agent/projection.ts'
import { branchSchema } from '../../../lib/journal/agent/records.ts'
import type { AgentState } from '../../../lib/journal/agent/state.ts'
import { activate, branchList, fork } from '../../../lib/session/branches.ts'
import type { SessionItem } from '../../../lib/session/item.ts'
import type { Platform } from '../../../lib/store/platform.ts'
import { person } from '../auth.ts'
import { decideAs } from '../decide.ts'
import type { Env } from '../env.ts'
import { answers, bodyProblems, jsonBody, needs, problems } from '../openapi.ts'
import { sessionParams } from '../schemas.ts'

const path = '/v1/sessions/{id}/branches'
const branchAnswer = z.object({ branch_id: branchSchema })

const create = createRoute({
  method: 'post',
  security: needs('operator'),
  path,
  summary: 'Make a branch of the agent’s records that goes on from one of them, and activate it',
  request: {
    params: sessionParams,
    body: jsonBody(z.strictObject({ from_record_id: idSchema('evt') })),
  },
  responses: { 201: answers(branchAnswer, 'The branch, which is the active one'), ...bodyProblems },
})

const change = createRoute({
  method: 'post',
  security: needs('operator'),
  path: `${path}/{branch_id}/activate`,
  summary: 'Go on with another branch of the agent’s records',
  request: {
    params: sessionParams.extend({ branch_id: branchSchema }),
    body: jsonBody(z.strictObject({})),
  },
  responses: { 200: answers(branchAnswer, 'The branch, which is the active one'), ...bodyProblems },
})

const list = createRoute({
  method: 'get',
  security: needs('viewer'),
  path,
  summary: 'The branches of the agent’s records, in the order in which they were made',
  request: { params: sessionParams },
  responses: {
    200: answers(
      z.object({
        data: z.array(branchSummarySchema.extend({ active: z.boolean() })),
        next_cursor: z.null(),
      }),
      'All branches',
    ),
    ...problems,
  },
})

/** The calls by which people go back to an earlier place in the agent's records, and on from there. */
export const branchRoutes = (app: OpenAPIHono<Env>, platform: Platform): void => {
  const agentOf = async (item: SessionItem): Promise<AgentState> => (await platform.heads.at(item)).agent
  const now = () => new Date(platform.clock()).toISOString()

  app.openapi(create, async (c) => {
    const from = c.req.valid('json').from_record_id
    // A repeat of a call that died in the middle means the same branch.
    const branch = c.get('subjectId').replace(/^ses_/, 'brn_')
    await decideAs(c, platform, c.req.valid('param').id, async (item, actor) =>
      fork(item, await agentOf(item), { branch, from, time: now() }, actor),
    )
    return c.json({ branch_id: branch }, 201)
  })

  app.openapi(change, async (c) => {
    const { id, branch_id: branch } = c.req.valid('param')
    await decideAs(c, platform, id, async (item, actor) =>
      activate(item, await agentOf(item), { branch, time: now() }, actor),
    )
    return c.json({ branch_id: branch }, 200)
  })

  app.openapi(list, async (c) => {
    const { team } = person(c.get('principal'))
    const item = await platform.sessions.require({ team, id: c.req.valid('param').id })
    return c.json({ data: branchList(await agentOf(item)), next_cursor: null }, 200)
  })
}
