import { z } from 'zod'
import { limits } from '../../limits.ts'
import {
  argumentsSchema,
  jsonObjectSchema,
  lineSchema,
  textSchema,
  toolNameSchema,
  v7IdSchema,
} from './scalars.ts'

const { hosted, providerCallId, failureMessage } = limits.record

/** An absolute HTTP address without credentials, blanks or control characters. */
const isHttpUrl = (text: string): boolean => {
  if (text.includes(' ') || !URL.canParse(text)) return false
  const { protocol, username, password, host } = new URL(text)
  return /^https?:$/.test(protocol) && username === '' && password === '' && host !== ''
}

export const httpUrlSchema = (max: number) =>
  lineSchema(max).refine(isHttpUrl, 'has to be an HTTP address without credentials')

export const providerCallIdSchema = lineSchema(providerCallId)

/** A source that a provider's own tool found. */
const sourceSchema = z.strictObject({
  url: httpUrlSchema(hosted.url),
  title: lineSchema(hosted.title).optional(),
  snippet: textSchema(hosted.text).optional(),
})

const continuationName = z
  .string()
  .max(128)
  .regex(/^[a-z][a-z0-9._-]*$/)

/** What a provider wants back in a later request; opaque to everybody else. */
const continuationSchema = z.strictObject({
  provider: continuationName,
  format: continuationName,
  payload: jsonObjectSchema(hosted.continuation),
})

const outcomeSchema = z.discriminatedUnion('status', [
  z.strictObject({ status: z.literal('success') }),
  z.strictObject({
    status: z.literal('error'),
    error: z.strictObject({
      code: z
        .string()
        .max(128)
        .regex(/^[a-z0-9_.-]+$/),
      message: textSchema(failureMessage),
    }),
  }),
])

/** One whole activity of a tool that the provider runs itself, inside an assistant's message. */
export const activitySchema = z.strictObject({
  tool_call_id: v7IdSchema('call'),
  provider_call_id: providerCallIdSchema,
  tool_name: toolNameSchema,
  arguments: argumentsSchema,
  outcome: outcomeSchema,
  sources: z.array(sourceSchema).max(hosted.sources),
  continuation: continuationSchema.optional(),
})
export type Activity = z.infer<typeof activitySchema>

const index = z.number().int().min(0).max(0xffff_ffff)

/** A source that an assistant's text cites; the range is half open, in bytes of that text. */
export const citationSchema = z
  .strictObject({
    tool_call_id: v7IdSchema('call').optional(),
    source: sourceSchema,
    start_index: index.optional(),
    end_index: index.optional(),
    cited_text: textSchema(hosted.text).optional(),
    continuation: continuationSchema.optional(),
  })
  .refine(
    ({ start_index: start, end_index: end }) =>
      start === undefined || end === undefined ? start === end : start < end,
    { message: 'a range has both ends, in order', path: ['end_index'] },
  )
