import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { GatehouseError, isError } from '../../../lib/errors.ts'
import type { Actor } from '../../../lib/journal/entry.ts'
import { approve, cancel, confirm, reject, requestChanges, revise } from '../../../lib/session/decisions.ts'
import type { Change, SessionItem } from '../../../lib/session/item.ts'
import { transition } from '../../../lib/store/effects.ts'
import type { Platform } from '../../../lib/store/platform.ts'
import type { Role } from '../../../lib/team/roles.ts'
import { actorOf, person } from '../auth.ts'
import type { Env } from '../env.ts'
import { answers, jsonBody, problems } from '../openapi.ts'
import {
  approveSchema,
  cancelSchema,
  changesSchema,
  confirmSchema,
  rejectSchema,
  reviseSchema,
  sessionParams,
  sessionSchema,
} from '../schemas.ts'
import { reviewView, sessionView } from '../views.ts'

const decision = <Path extends string, Body extends z.ZodType, Answer extends z.ZodType>(
  path: Path,
  summary: string,
  body: Body,
  answer: Answer,
) =>
  createRoute({
    method: 'post',
    path: `/v1/sessions/{id}/${path}` as const,
    summary,
    request: { params: sessionParams, body: jsonBody(body) },
    responses: { 200: answers(answer, 'The session after the decision'), ...problems },
  })

const routes = {
  confirm: decision(
    'contract/confirm',
    'Confirm the contract, as it is or edited',
    confirmSchema,
    sessionSchema,
  ),
  revise: decision(
    'contract/revise',
    'Replace the proposed contract',
    reviseSchema,
    z.object({ revised: z.boolean(), session: sessionSchema, message: z.string().optional() }),
  ),
  approve: decision('review/approve', 'Approve exactly this review', approveSchema, sessionSchema),
  reject: decision('review/reject', 'Reject the review; the session ends', rejectSchema, sessionSchema),
  changes: decision('review/changes', 'Send the work back with guidance', changesSchema, sessionSchema),
  cancel: decision(
    'cancel',
    'Cancel; a second cancel is no error',
    cancelSchema,
    z.object({ session: sessionSchema, already_terminal: z.boolean() }),
  ),
}

/** If-Match (API.md, Conventions): a stale version gets 412 and nothing is written. */
const requireMatch = (c: Context<Env>, item: SessionItem): void => {
  const wanted = c.req.header('if-match')
  if (wanted === undefined || wanted.trim() === '*') return
  const tags = wanted.split(',').map((tag) => tag.trim().replace(/^W\//, ''))
  if (!tags.includes(`"${item.version}"`)) {
    throw new GatehouseError('precondition_failed', `the session is at version ${item.version}`)
  }
}

/** A refusal with what is true now, so that the caller can decide again. */
const withCurrent = async (
  platform: Platform,
  item: SessionItem,
  error: GatehouseError,
): Promise<GatehouseError> => {
  const session = sessionView(item)
  const review =
    error.code === 'review_moved' && item.document.review_identity
      ? await reviewView(platform, item)
      : undefined
  return new GatehouseError(error.code, error.message, {
    ...(error.errors ? { errors: error.errors } : {}),
    extra: { session, ...(review ? { review } : {}) },
    cause: error,
  })
}

type Decide = (item: SessionItem, actor: Actor) => Change | null

/** Decides as a person of a role; one conditional write, and the loser of a race is told the current session. */
const decideAs = async (
  c: Context<Env>,
  platform: Platform,
  id: string,
  role: Role,
  decide: Decide,
): Promise<SessionItem> => {
  const who = person(c.get('principal'), role)
  const key = { team: who.team, id }
  try {
    return await transition(platform, key, (item) => {
      requireMatch(c, item)
      return decide(item, actorOf(who))
    })
  } catch (error) {
    if (
      !isError(
        error,
        'already_decided',
        'illegal_transition',
        'contract_moved',
        'review_moved',
        'precondition_failed',
      )
    )
      throw error
    throw await withCurrent(platform, await platform.sessions.require(key), error)
  }
}

export const decisionRoutes = (app: OpenAPIHono<Env>, platform: Platform): void => {
  // Without the outputs of its checks: an answer that is kept for its idempotency key has to fit into an item.
  const answer = (c: Context<Env>, item: SessionItem) => {
    c.header('etag', `"${item.version}"`)
    return sessionView(item)
  }

  app.openapi(routes.confirm, async (c) => {
    const item = await decideAs(c, platform, c.req.valid('param').id, 'approver', (now, actor) =>
      confirm(now, c.req.valid('json'), actor),
    )
    return c.json(answer(c, item), 200)
  })

  app.openapi(routes.revise, async (c) => {
    const outcome = { revised: false }
    const item = await decideAs(c, platform, c.req.valid('param').id, 'operator', (now, actor) => {
      const change = revise(now, c.req.valid('json').contract, actor)
      outcome.revised = change !== null
      return change
    })
    const message = 'The checks are the same; only a change of them is a revision.'
    const session = answer(c, item)
    return c.json({ ...outcome, session, ...(outcome.revised ? {} : { message }) }, 200)
  })

  app.openapi(routes.approve, async (c) => {
    const item = await decideAs(c, platform, c.req.valid('param').id, 'approver', (now, actor) =>
      approve(now, c.req.valid('json'), actor),
    )
    return c.json(answer(c, item), 200)
  })

  app.openapi(routes.reject, async (c) => {
    const item = await decideAs(c, platform, c.req.valid('param').id, 'approver', (now, actor) =>
      reject(now, c.req.valid('json'), actor),
    )
    return c.json(answer(c, item), 200)
  })

  app.openapi(routes.changes, async (c) => {
    const item = await decideAs(c, platform, c.req.valid('param').id, 'approver', (now, actor) =>
      requestChanges(now, c.req.valid('json'), actor, platform.clock()),
    )
    return c.json(answer(c, item), 200)
  })

  app.openapi(routes.cancel, async (c) => {
    let cancelled = false
    const item = await decideAs(c, platform, c.req.valid('param').id, 'operator', (now, actor) => {
      const change = cancel(now, c.req.valid('json').reason, actor)
      cancelled = change !== null
      return change
    })
    return c.json({ session: answer(c, item), already_terminal: !cancelled }, 200)
  })
}
