import { z } from 'zod'
import { checkpointSchema } from '../journal/agent/projection.ts'
import { branchSchema } from '../journal/agent/records.ts'
import { argumentsSchema } from '../journal/agent/scalars.ts'

/**
 * Given once the batch is in the journal: the sequence of its last entry (of a later one for events alone), where its
 * records are, in their order, and its receipt.
 */
export const entriesSchema = z.strictObject({
  sequence: z.number().int(),
  receipt: z.string().nullable(),
  records: z.array(z.strictObject({ sequence: z.number().int(), id: z.string() })),
})
export type Appended = z.infer<typeof entriesSchema>

/** The first fact of a batch, from 0, that can't follow what the journal holds (spec/session-record.md B.6), and why. */
export const refusalSchema = z.strictObject({ index: z.number().int(), kind: z.string(), reason: z.string() })
export type Refusal = z.infer<typeof refusalSchema>

/** What a restarted engine has to know of the agent's records to go on (spec/session-record.md B.9). */
export const agentViewSchema = z.strictObject({
  /** The last entry that this takes into account. */
  sequence: z.number().int(),
  branch: branchSchema.nullable(),
  /** How the last run stands, and whether a new one may begin. */
  run: z.string(),
  new_run: z.boolean(),
  checkpoint: checkpointSchema.nullable(),
  /** Calls without a result message, and what a next record may do about each. */
  calls: z.array(
    z.strictObject({
      tool_call_id: z.string(),
      tool_name: z.string(),
      arguments: argumentsSchema,
      approval_id: z.string().nullable(),
      situation: z.string(),
      may: z.array(z.string()),
    }),
  ),
})
export type AgentView = z.infer<typeof agentViewSchema>

/** The conversation as a model is given it, in the package `ai`'s form as JSON. */
export const transcriptSchema = z.strictObject({ messages: z.array(z.record(z.string(), z.unknown())) })
export type Transcript = z.infer<typeof transcriptSchema>
