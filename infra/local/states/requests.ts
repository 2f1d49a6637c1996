import { z } from 'zod'
import { limits } from './limits.ts'

const arn = z.string().min(1).max(256)
const page = {
  maxResults: z.int().min(0).max(limits.pageSize).optional(),
  nextToken: z.string().min(1).max(1_024).optional(),
}
const taskToken = z.string().min(1).max(limits.tokenCharacters)
const failure = {
  error: z.string().max(limits.errorCharacters).optional(),
  cause: z.string().max(limits.causeCharacters).optional(),
}

export const startExecutionRequest = z.object({
  stateMachineArn: arn,
  name: z.string().optional(),
  input: z.string().default('{}'),
})
export const describeExecutionRequest = z.object({
  executionArn: arn,
  includedData: z.enum(['ALL_DATA', 'METADATA_ONLY']).default('ALL_DATA'),
})
export const stopExecutionRequest = z.object({ executionArn: arn, ...failure })
export const listExecutionsRequest = z.object({
  stateMachineArn: arn,
  statusFilter: z
    .enum(['RUNNING', 'SUCCEEDED', 'FAILED', 'TIMED_OUT', 'ABORTED', 'PENDING_REDRIVE'])
    .optional(),
  ...page,
})
export const getExecutionHistoryRequest = z.object({
  executionArn: arn,
  reverseOrder: z.boolean().default(false),
  includeExecutionData: z.boolean().default(true),
  ...page,
})
export const describeStateMachineRequest = z.object({ stateMachineArn: arn })
export const listStateMachinesRequest = z.object(page)
export const sendTaskSuccessRequest = z.object({ taskToken, output: z.string() })
export const sendTaskFailureRequest = z.object({ taskToken, ...failure })
export const sendTaskHeartbeatRequest = z.object({ taskToken })
