import { z } from 'zod'
import { limits } from '../../limits.ts'
import { activitySchema, citationSchema, providerCallIdSchema } from './external.ts'
import { argumentsSchema, lineSchema, textSchema, toolNameSchema, v7IdSchema } from './scalars.ts'

const { text, inlineImage, imageReference, blocks } = limits.record

const textBlock = z.strictObject({ type: z.literal('text'), text: textSchema(text) })
const thinkingBlock = z.strictObject({ type: z.literal('thinking'), text: textSchema(text) })

/** Standard padded base 64, in the one spelling that decoding and encoding again gives back. */
const base64 = z
  .string()
  .min(1)
  .max(inlineImage)
  .refine((data) => Buffer.from(data, 'base64').toString('base64') === data, 'has to be base 64')

const imageBlock = z.strictObject({
  type: z.literal('image'),
  mime_type: z.string().regex(/^image\/[a-z0-9+.-]+$/),
  source: z.discriminatedUnion('type', [
    z.strictObject({ type: z.literal('inline_base64'), data: base64 }),
    z.strictObject({ type: z.literal('reference'), reference: lineSchema(imageReference) }),
  ]),
})

const toolCallBlock = z.strictObject({
  type: z.literal('tool_call'),
  tool_call_id: v7IdSchema('call'),
  /** The provider's own name for the call, which it wants to see again. */
  provider_call_id: providerCallIdSchema.optional(),
  tool_name: toolNameSchema,
  arguments: argumentsSchema,
})

/** What a user or a tool may say (spec/session-record.md B.5). */
export const plainContentSchema = z
  .array(z.discriminatedUnion('type', [textBlock, imageBlock]))
  .min(1)
  .max(blocks)
export type PlainContent = z.infer<typeof plainContentSchema>

/** What an assistant may say. */
export const assistantContentSchema = z
  .array(
    z.discriminatedUnion('type', [
      textBlock,
      thinkingBlock,
      toolCallBlock,
      z.strictObject({ type: z.literal('hosted_tool'), activity: activitySchema }),
      z.strictObject({ type: z.literal('citation'), citation: citationSchema }),
    ]),
  )
  .min(1)
  .max(blocks)
export type ToolCallBlock = z.infer<typeof toolCallBlock>
