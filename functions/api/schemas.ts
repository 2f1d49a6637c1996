import { z } from '@hono/zod-openapi'
import { checkResultSchema, contractSchema } from '../../lib/contract/schema.ts'
import { type ErrorCode, errorCodes } from '../../lib/errors.ts'
import { idSchema } from '../../lib/ids.ts'
import { headSchema } from '../../lib/journal/entry.ts'
import { limits } from '../../lib/limits.ts'
import { refusalSchema } from '../../lib/session/agent-protocol.ts'
import {
  documentSchema,
  gateKindSchema,
  reviewIdentitySchema,
  statSchema,
} from '../../lib/session/document.ts'
import { reviewBodySchema } from '../../lib/session/protocol.ts'
import { stageSchema } from '../../lib/session/states.ts'
import { hasControl } from '../../lib/text/visible.ts'

const nothing = z.null()

/** A session as the API shows it: the document, what a person is asked for, and the members that this version leaves empty. */
export const sessionSchema = documentSchema
  .extend({
    workspace_path: nothing,
    project: nothing,
    project_kind: nothing,
    existing_agent_id: nothing,
    builder_draft: nothing,
    built_agent: nothing,
    agent_build_progress: nothing,
    model: nothing,
    checkout_identity: nothing,
    inputs_snapshot: nothing,
    discussion_id: nothing,
    discussion_constraints: z.array(z.string()),
    browser: z.boolean(),
    distributed: z.boolean(),
    workers: z.array(z.string()),
    pool_workers: z.array(z.string()),
    placements: z.array(z.unknown()).max(0),
    integrated_subtasks: z.array(z.unknown()).max(0),
    repaired_locally: z.boolean(),
    authored_by: z.array(z.string()),
    event_cursor: z.number().int(),
    /** What is allowed in the contract and rarely meant. */
    contract_warnings: z.array(z.string()),
    needs_you: z
      .union([
        z.object({
          kind: gateKindSchema,
          label: z.string(),
          context: z.string(),
          gate_id: idSchema('gate'),
        }),
        z.object({
          kind: z.literal('question'),
          label: z.string(),
          context: z.string(),
          request_id: idSchema('req'),
        }),
      ])
      .nullable(),
    /** Where a session that waits for a slot stands in its team's queue, from 1; null when it does not wait. */
    queue: z.object({ place: z.number().int().nullable(), waiting: z.number().int().nullable() }).nullable(),
    cost_usd: z.number().nullable(),
    version: z.number().int(),
    journal_head: headSchema,
    compute: z.object({
      status: z.enum(['none', 'starting', 'live', 'stopping', 'stopped']),
      stopped_at: z.string().nullable(),
    }),
  })
  .openapi('Session')
export type SessionView = z.infer<typeof sessionSchema>

export const reviewSchema = reviewIdentitySchema
  .extend({
    session_id: idSchema('ses'),
    checks: z.array(checkResultSchema),
    baseline: z.array(checkResultSchema),
    stat: statSchema,
    authored_by: z.array(z.string()),
    finding: documentSchema.shape.no_change_finding,
    /** Names of the checks that a person let through red. */
    accepted_red: z.array(z.string()),
    /** What is to know of where the work comes from; of the session, and no part of what is bound. */
    source_warnings: z.array(z.string()),
  })
  .extend(reviewBodySchema.shape)
  .openapi('Review')
export type ReviewView = z.infer<typeof reviewSchema>

const codes = Object.keys(errorCodes).filter((code): code is ErrorCode => code in errorCodes)

export const problemSchema = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.number().int(),
    detail: z.string(),
    code: z.enum(codes),
    request_id: z.string(),
    errors: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
    /** The first line of an import that was refused, counted from 1, and what came of it. */
    line: z.number().int().optional(),
    outcome: z.enum(['unsupported_version', 'unsupported_type', 'invalid', 'out_of_place']).optional(),
    /** The record that an export has no place for, by its entry, and how many could be exported before it. */
    record: z
      .object({ sequence: z.number().int(), type: z.string(), exportable: z.number().int() })
      .optional(),
    /** The first record that can't stand where it would, and why. */
    refusal: refusalSchema.optional(),
    /** The session as it is now, where a decision came too late or named what has moved. */
    session: sessionSchema.optional(),
    /** The review as it is now, where an approval named an older one. */
    review: reviewSchema.optional(),
  })
  .openapi('Problem')

export const pageQuery = z.strictObject({
  limit: z.coerce.number().int().min(1).max(limits.pageSize.max).default(limits.pageSize.default),
  cursor: idSchema('ses').optional(),
})

export const sessionParams = z.object({ id: idSchema('ses') })

const comment = z
  .string()
  .max(limits.reason)
  .refine((text) => !hasControl(text), { error: 'has to be free of control characters' })
const steering = z
  .string()
  .trim()
  .min(1)
  .refine((text) => Buffer.byteLength(text) <= limits.steering, {
    error: `has to be at most ${limits.steering} bytes`,
  })

export const confirmSchema = z.strictObject({
  contract_hash: z.string().min(1),
  contract: contractSchema.nullable().default(null),
})
/** Words instead of a contract need a model to make checks of them. */
export const reviseSchema = z
  .strictObject({ contract: contractSchema.optional(), request: steering.optional() })
  .refine(({ contract, request }) => (contract === undefined) !== (request === undefined), {
    error: 'has to hold either a contract or a request',
  })
export const approveSchema = z.strictObject({
  review_id: idSchema('rev'),
  delivery: z.strictObject({ kind: z.literal('branch') }).optional(),
  comment: comment.nullable().default(null),
})
export const rejectSchema = z.strictObject({ review_id: idSchema('rev'), reason: comment.trim().min(1) })
export const changesSchema = z.strictObject({ review_id: idSchema('rev'), text: steering })
export const gateDecisionSchema = z.strictObject({
  gate_id: idSchema('gate'),
  action: z.enum(['advance', 'loop_back', 'abort']),
  note: comment.nullable().default(null),
})
export const steerSchema = z.strictObject({ text: steering })
export const answerSchema = z.strictObject({
  request_id: idSchema('req'),
  text: z
    .string()
    .min(1)
    .refine((text) => Buffer.byteLength(text) <= limits.answer, {
      error: `has to be at most ${limits.answer} bytes`,
    }),
})
export const resumeSchema = z.strictObject({
  until: stageSchema.exclude(['ship']).nullable().default(null),
})
export const cancelSchema = z.strictObject({ reason: comment.nullable().default(null) })
