import { z } from 'zod'
import { plainContentSchema } from './content.ts'
import { failureSchema, messageSchema } from './messages.ts'
import { presentationSchema } from './presentation.ts'
import {
  approvalDecisionSchema,
  executionTargetSchema,
  idempotencySchema,
  modelSchema,
  nextActionSchema,
  policyDecisionSchema,
  reasoningEffortSchema,
} from './records.ts'
import { argumentsSchema, metadataSchema, timeSchema } from './scalars.ts'

export const configurationSchema = z.strictObject({
  model: modelSchema.nullable(),
  profile_id: z.string(),
  reasoning_effort: reasoningEffortSchema.nullable(),
})
export type Configuration = z.infer<typeof configurationSchema>

const executionSchema = z.discriminatedUnion('status', [
  z.strictObject({ status: z.literal('not_started') }),
  z.strictObject({
    status: z.literal('started'),
    execution_target: executionTargetSchema,
    idempotency: idempotencySchema,
  }),
  z.strictObject({
    status: z.literal('finished'),
    is_error: z.boolean(),
    content: plainContentSchema,
    error: failureSchema.optional(),
    presentation: presentationSchema.optional(),
  }),
  z.strictObject({
    status: z.literal('interrupted'),
    reason: z.string(),
    execution_target: executionTargetSchema,
    idempotency: idempotencySchema,
  }),
])
export type Execution = z.infer<typeof executionSchema>

/** A call as it stands on a branch. `approval_decision` is `expired` when nobody decided in time. */
export const toolCallSchema = z.strictObject({
  tool_call_id: z.string(),
  tool_name: z.string(),
  arguments: argumentsSchema,
  policy_decision: policyDecisionSchema.nullable(),
  approval_id: z.string().nullable(),
  approval_decision: z.union([approvalDecisionSchema, z.literal('expired')]).nullable(),
  execution: executionSchema,
  result_message_id: z.string().nullable(),
})
export type ToolCall = z.infer<typeof toolCallSchema>

export const pendingApprovalSchema = z.strictObject({
  approval_id: z.string(),
  tool_call_id: z.string(),
  requested_at: timeSchema,
  expires_at: timeSchema,
})
export type PendingApproval = z.infer<typeof pendingApprovalSchema>

export const runRecoverySchema = z.discriminatedUnion('status', [
  z.strictObject({ status: z.literal('interrupted'), turn_id: z.string(), reason: z.string() }),
  z.strictObject({ status: z.literal('cancelled') }),
])
export type RunRecovery = z.infer<typeof runRecoverySchema>

export const checkpointSchema = z.strictObject({
  run_id: z.string(),
  turn_id: z.string(),
  record_id: z.string(),
  sequence: z.number().int(),
  next_action: nextActionSchema,
})
export type Checkpoint = z.infer<typeof checkpointSchema>

export const compactionSchema = z.strictObject({
  summary: messageSchema,
  compacted_through_record_id: z.string(),
})
export type Compaction = z.infer<typeof compactionSchema>

export const branchSummarySchema = z.strictObject({
  branch_id: z.string(),
  source_branch_id: z.string().nullable(),
  from_record_id: z.string(),
  leaf_record_id: z.string(),
})
export type BranchSummary = z.infer<typeof branchSummarySchema>

/** What the records of one branch come to (spec/session-record.md B.6), as plain data. */
export const projectionSchema = z.strictObject({
  configuration: configurationSchema,
  messages: z.array(messageSchema),
  pending_approvals: z.record(z.string(), pendingApprovalSchema),
  tool_calls: z.record(z.string(), toolCallSchema),
  run_recovery: z.record(z.string(), runRecoverySchema),
  latest_checkpoint: checkpointSchema.nullable(),
  latest_compaction: compactionSchema.nullable(),
})
export type Projection = z.infer<typeof projectionSchema>

/** The whole materialised state: the active branch's projection and the session around it. */
export const materialisedSchema = projectionSchema.extend({
  session_id: z.string(),
  tail_sequence: z.number().int(),
  tail_record_id: z.string(),
  metadata: metadataSchema,
  active_branch_id: z.string().nullable(),
  branches: z.record(z.string(), branchSummarySchema),
})
export type Materialised = z.infer<typeof materialisedSchema>
