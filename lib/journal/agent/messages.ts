import { z } from 'zod'
import { limits } from '../../limits.ts'
import { assistantContentSchema, plainContentSchema, type ToolCallBlock } from './content.ts'
import { snakeCodeSchema, textSchema, timeSchema, toolNameSchema, v7IdSchema } from './scalars.ts'

/** Why a tool's result is an error; the code is for programs. */
export const failureSchema = z.strictObject({
  code: snakeCodeSchema,
  message: textSchema(limits.record.failureMessage),
})
export type Failure = z.infer<typeof failureSchema>

/** The result is an error exactly when it says which. */
export const errorAgrees = ({ is_error, error }: { is_error: boolean; error?: Failure | undefined }) =>
  is_error === (error !== undefined)

export const errorDisagrees = { message: 'is_error and error have to agree', path: ['error'] }

/**
 * Why the model stopped: completed, length, tool_use, pause_turn, cancelled, error, or a code that is not known here and
 * is kept as it is, the one exception to refusing unknown values.
 */
const stopReasonSchema = snakeCodeSchema

const base = { id: v7IdSchema('msg'), timestamp: timeSchema }

const userMessage = z.strictObject({ type: z.literal('user'), ...base, content: plainContentSchema })

const assistantMessage = z.strictObject({
  type: z.literal('assistant'),
  ...base,
  content: assistantContentSchema,
  stop_reason: stopReasonSchema,
})
export type AssistantMessage = z.infer<typeof assistantMessage>

const toolResultMessage = z
  .strictObject({
    type: z.literal('tool_result'),
    ...base,
    tool_call_id: v7IdSchema('call'),
    tool_name: toolNameSchema,
    content: plainContentSchema,
    is_error: z.boolean(),
    error: failureSchema.optional(),
  })
  .refine(errorAgrees, errorDisagrees)
export type ToolResultMessage = z.infer<typeof toolResultMessage>

/** A message as the journal keeps it, of no provider's own form (spec/session-record.md B.5). */
export const messageSchema = z.discriminatedUnion('type', [userMessage, assistantMessage, toolResultMessage])
export type Message = z.infer<typeof messageSchema>

/** The calls that a message declares, in the model's order. */
export const declaredCalls = (message: Message): readonly ToolCallBlock[] =>
  message.type === 'assistant' ? message.content.filter((block) => block.type === 'tool_call') : []
