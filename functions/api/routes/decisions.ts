import { type OpenAPIHono, z } from '@hono/zod-openapi'
import { GatehouseError } from '../../../lib/errors.ts'
import { confirm, revise } from '../../../lib/session/contract-decisions.ts'
import { decideGate } from '../../../lib/session/gate-decisions.ts'
import { approve, reject, requestChanges } from '../../../lib/session/review-decisions.ts'
import type { Platform } from '../../../lib/store/platform.ts'
import { decideAs, decided, decision } from '../decide.ts'
import type { Env } from '../env.ts'
import {
  approveSchema,
  changesSchema,
  confirmSchema,
  gateDecisionSchema,
  rejectSchema,
  reviseSchema,
  sessionSchema,
} from '../schemas.ts'

const routes = {
  confirm: decision(
    'contract/confirm',
    'approver',
    'Confirm the contract, as it is or edited',
    confirmSchema,
    sessionSchema,
  ),
  revise: decision(
    'contract/revise',
    'operator',
    'Replace the proposed contract',
    reviseSchema,
    z.object({ revised: z.boolean(), session: sessionSchema, message: z.string().optional() }),
  ),
  gate: decision(
    'gate',
    'approver',
    'Decide a preflight or validate gate',
    gateDecisionSchema,
    sessionSchema,
  ),
  approve: decision(
    'review/approve',
    'approver',
    'Approve exactly this review',
    approveSchema,
    sessionSchema,
  ),
  reject: decision(
    'review/reject',
    'approver',
    'Reject the review; the session ends',
    rejectSchema,
    sessionSchema,
  ),
  changes: decision(
    'review/changes',
    'approver',
    'Send the work back with guidance',
    changesSchema,
    sessionSchema,
  ),
}

/** The calls by which people decide a session's gates. */
export const decisionRoutes = (app: OpenAPIHono<Env>, platform: Platform): void => {
  app.openapi(routes.confirm, async (c) => {
    const item = await decideAs(c, platform, c.req.valid('param').id, (now, actor) =>
      confirm(now, c.req.valid('json'), actor),
    )
    return c.json(decided(c, item), 200)
  })

  app.openapi(routes.revise, async (c) => {
    const outcome = { revised: false }
    const { contract } = c.req.valid('json')
    if (contract === undefined) {
      const message = 'no model is here to make checks of words; send the contract instead'
      throw new GatehouseError('not_available', message, { errors: [{ path: 'request', message }] })
    }
    const item = await decideAs(c, platform, c.req.valid('param').id, (now, actor) => {
      const change = revise(now, contract, actor)
      outcome.revised = change !== null
      return change
    })
    const message = 'The checks are the same; only a change of them is a revision.'
    const session = decided(c, item)
    return c.json({ ...outcome, session, ...(outcome.revised ? {} : { message }) }, 200)
  })

  app.openapi(routes.gate, async (c) => {
    const item = await decideAs(c, platform, c.req.valid('param').id, (now, actor) =>
      decideGate(now, c.req.valid('json'), actor, platform.clock()),
    )
    return c.json(decided(c, item), 200)
  })

  app.openapi(routes.approve, async (c) => {
    const item = await decideAs(c, platform, c.req.valid('param').id, (now, actor) =>
      approve(now, c.req.valid('json'), actor),
    )
    return c.json(decided(c, item), 200)
  })

  app.openapi(routes.reject, async (c) => {
    const item = await decideAs(c, platform, c.req.valid('param').id, (now, actor) =>
      reject(now, c.req.valid('json'), actor),
    )
    return c.json(decided(c, item), 200)
  })

  app.openapi(routes.changes, async (c) => {
    const item = await decideAs(c, platform, c.req.valid('param').id, (now, actor) =>
      requestChanges(now, c.req.valid('json'), actor, platform.clock()),
    )
    return c.json(decided(c, item), 200)
  })
}
