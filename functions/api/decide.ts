import type { z } from '@hono/zod-openapi'
import { createRoute } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { GatehouseError, isError } from '../../lib/errors.ts'
import type { Actor } from '../../lib/journal/entry.ts'
import type { Change, SessionItem } from '../../lib/session/item.ts'
import { transition } from '../../lib/store/effects.ts'
import type { Platform } from '../../lib/store/platform.ts'
import type { Role } from '../../lib/team/roles.ts'
import { actorOf, person } from './auth.ts'
import type { Env } from './env.ts'
import { answers, bodyProblems, jsonBody, needs } from './openapi.ts'
import { sessionParams } from './schemas.ts'
import { reviewView, sessionView } from './views.ts'

/** The route of a call by which a person decides something about a session. */
export const decision = <Path extends string, Body extends z.ZodType, Answer extends z.ZodType>(
  path: Path,
  role: Role,
  summary: string,
  body: Body,
  answer: Answer,
) =>
  createRoute({
    method: 'post',
    security: needs(role),
    path: `/v1/sessions/{id}/${path}` as const,
    summary,
    request: { params: sessionParams, body: jsonBody(body) },
    responses: { 200: answers(answer, 'The session after the decision'), ...bodyProblems },
  })

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

/** Decides on the session as it is; null when there is nothing to write. */
export type Decide = (item: SessionItem, actor: Actor) => Change | null | Promise<Change | null>

/** Decides as the person who calls; one conditional write, and the loser of a race is told the current session. */
export const decideAs = async (
  c: Context<Env>,
  platform: Platform,
  id: string,
  decide: Decide,
): Promise<SessionItem> => {
  const who = person(c.get('principal'))
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

/** The session as a decision's answer shows it: without the outputs of its checks, so that it can be kept for a repeat. */
export const decided = (c: Context<Env>, item: SessionItem) => {
  c.header('etag', `"${item.version}"`)
  return sessionView(item)
}
