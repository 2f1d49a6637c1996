import { z } from 'zod'
import type { JsonObject } from './json.ts'

/**
 * The message list that a model is given: the part of `ModelMessage` of the package `ai` (version 7) that transcripts are
 * made of. Our own schema, since the domain does not depend on that package; what this accepts, its `modelMessageSchema`
 * accepts.
 */
const textPart = z.strictObject({ type: z.literal('text'), text: z.string() })

const filePart = z.strictObject({
  type: z.literal('file'),
  mediaType: z.string(),
  data: z.discriminatedUnion('type', [
    z.strictObject({ type: z.literal('data'), data: z.string() }),
    z.strictObject({ type: z.literal('url'), url: z.instanceof(URL) }),
  ]),
})
export type FilePart = z.infer<typeof filePart>

const providerOptions = z.record(z.string(), z.record(z.string(), z.json())).exactOptional()

const toolCallPart = z.strictObject({
  type: z.literal('tool-call'),
  toolCallId: z.string(),
  toolName: z.string(),
  input: z.custom<JsonObject>((value) => typeof value === 'object' && value !== null),
  /** The provider ran it itself. */
  providerExecuted: z.literal(true).exactOptional(),
})

const outputSchema = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('text'), value: z.string() }),
  z.strictObject({ type: z.literal('error-text'), value: z.string() }),
  z.strictObject({ type: z.literal('json'), value: z.json() }),
  z.strictObject({ type: z.literal('error-json'), value: z.json() }),
  z.strictObject({
    type: z.literal('content'),
    value: z.array(z.discriminatedUnion('type', [textPart, filePart])),
  }),
])
export type ToolOutput = z.infer<typeof outputSchema>

const toolResultPart = z.strictObject({
  type: z.literal('tool-result'),
  toolCallId: z.string(),
  toolName: z.string(),
  output: outputSchema,
  providerOptions,
})
export type ToolResultPart = z.infer<typeof toolResultPart>

const userPart = z.discriminatedUnion('type', [textPart, filePart])
export type UserPart = z.infer<typeof userPart>

const assistantPart = z.discriminatedUnion('type', [
  textPart,
  z.strictObject({ type: z.literal('reasoning'), text: z.string() }),
  toolCallPart,
  toolResultPart,
])
export type AssistantPart = z.infer<typeof assistantPart>

export const modelMessageSchema = z.discriminatedUnion('role', [
  z.strictObject({ role: z.literal('user'), content: z.array(userPart).min(1) }),
  z.strictObject({ role: z.literal('assistant'), content: z.array(assistantPart).min(1) }),
  z.strictObject({ role: z.literal('tool'), content: z.array(toolResultPart).min(1) }),
])
export type ModelMessage = z.infer<typeof modelMessageSchema>
