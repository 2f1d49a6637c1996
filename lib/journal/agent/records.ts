import { z } from 'zod'
import { limits } from '../../limits.ts'
import { factSchema as fact } from '../fact.ts'
import { plainContentSchema } from './content.ts'
import { errorAgrees, errorDisagrees, failureSchema, messageSchema } from './messages.ts'
import { presentationSchema } from './presentation.ts'
import {
  argumentsSchema,
  metadataSchema,
  reasonSchema,
  selectorSchema,
  textSchema,
  timeSchema,
  toolNameSchema,
  v7IdSchema,
} from './scalars.ts'

const call = { tool_call_id: v7IdSchema('call') }
const run = { run_id: v7IdSchema('run') }
const turn = { ...run, turn_id: v7IdSchema('turn') }
const approval = { approval_id: v7IdSchema('apr') }
const recordId = v7IdSchema('evt')

/** `main` is the branch whose UUID is the session's own (spec/session-record.md B.10); every other has an id. */
export const branchSchema = z.union([z.literal('main'), v7IdSchema('brn')])

export const policyDecisionSchema = z.enum(['allow', 'deny', 'require_approval'])
export const approvalDecisionSchema = z.enum(['allow_once', 'allow_session', 'deny'])
const namedDecision = z.strictObject({ type: approvalDecisionSchema })
/** An object that names its type; older journals hold the bare name, which means the same. */
const decisionSchema = z
  .preprocess((value) => (typeof value === 'string' ? { type: value } : value), namedDecision)
  .meta({ anyOf: [z.toJSONSchema(namedDecision), z.toJSONSchema(approvalDecisionSchema)] })
export const executionTargetSchema = z.enum(['native', 'mcp', 'remote'])
export const idempotencySchema = z.enum(['idempotent', 'non_idempotent', 'externally_reconciled'])
export const nextActionSchema = z.enum(['model_request', 'wait_for_approval', 'finish_run'])
export const modelSchema = z.strictObject({ provider_id: selectorSchema, model_id: selectorSchema })
export const reasoningEffortSchema = z.enum(['off', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'])

const configuration = z
  .strictObject({
    model: modelSchema.optional(),
    profile_id: selectorSchema.optional(),
    reasoning_effort: reasoningEffortSchema.optional(),
  })
  .refine(
    (data) =>
      data.model !== undefined || data.profile_id !== undefined || data.reasoning_effort !== undefined,
    'at least one part has to change',
  )

const finished = z
  .strictObject({
    ...call,
    is_error: z.boolean(),
    content: plainContentSchema,
    error: failureSchema.optional(),
    presentation: presentationSchema.optional(),
  })
  .refine(errorAgrees, errorDisagrees)
  .refine(({ is_error, presentation }) => !is_error || presentation === undefined, {
    message: 'an error has no presentation',
    path: ['presentation'],
  })

const resolved = z
  .strictObject({
    ...call,
    decision: z.enum(['failed', 'succeeded', 'reoffered']),
    by: textSchema(limits.record.selector),
    reason: reasonSchema,
    content: plainContentSchema.optional(),
    error: failureSchema.optional(),
  })
  .refine(({ decision, error }) => (decision === 'failed') === (error !== undefined), {
    message: 'there is an error exactly when the call failed',
    path: ['error'],
  })
  .refine(({ decision, content }) => (decision === 'reoffered') === (content === undefined), {
    message: 'there is content exactly when the call is over',
    path: ['content'],
  })

/** The first record of a session, as the agent's reducer sees it: what Gatehouse's own `session_created` comes to. */
export const creationSchema = fact(
  'session_created',
  z.strictObject({ profile_id: selectorSchema, metadata: metadataSchema.optional() }),
)

/**
 * The facts of the agent that a replay needs (spec/session-record.md B.4), but for `session_created`, for which the
 * session's own record stands. The last two are Gatehouse's: the interchange form has no place for them.
 */
export const agentFactSchema = z.discriminatedUnion('type', [
  fact('message_committed', z.strictObject({ message: messageSchema })),
  fact('configuration_changed', configuration),
  fact(
    'tool_call_requested',
    z.strictObject({ ...call, tool_name: toolNameSchema, arguments: argumentsSchema }),
  ),
  fact('policy_decision_recorded', z.strictObject({ ...call, decision: policyDecisionSchema })),
  fact('approval_requested', z.strictObject({ ...approval, ...call, expires_at: timeSchema })),
  fact('approval_resolved', z.strictObject({ ...approval, decision: decisionSchema })),
  fact(
    'tool_execution_started',
    z.strictObject({ ...call, execution_target: executionTargetSchema, idempotency: idempotencySchema }),
  ),
  fact('tool_execution_finished', finished),
  fact('tool_execution_interrupted', z.strictObject({ ...call, reason: reasonSchema })),
  fact('run_interrupted', z.strictObject({ ...turn, reason: reasonSchema })),
  fact('run_cancelled', z.strictObject(run)),
  fact(
    'branch_created',
    z.strictObject({ source_branch_id: branchSchema, branch_id: branchSchema, from_record_id: recordId }),
  ),
  fact('active_branch_changed', z.strictObject({ branch_id: branchSchema })),
  fact(
    'session_compacted',
    z.strictObject({ summary: messageSchema, compacted_through_record_id: recordId }),
  ),
  fact('turn_checkpointed', z.strictObject({ ...turn, next_action: nextActionSchema })),
  /** Nobody answered in time: the question is no more, and the call may end with an error as if it had been denied. */
  fact('approval_expired', z.strictObject(approval)),
  /**
   * Somebody decided what an interrupted call came to: it failed or succeeded with this result, or (only where its start
   * was recorded as idempotent) it may be started again.
   */
  fact('tool_call_resolved', resolved),
])

export type AgentFact = z.infer<typeof agentFactSchema>
export type AgentFactType = AgentFact['type']
export type DataOf<Type extends AgentFactType> = Extract<AgentFact, { type: Type }>['data']

const factTypes: ReadonlySet<string> = new Set(
  agentFactSchema.options.map((option) => option.shape.type.value),
)
export const isAgentFactType = (type: string): type is AgentFactType => factTypes.has(type)
