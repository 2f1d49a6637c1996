import { z } from 'zod'
import { limits } from '../../limits.ts'
import { httpUrlSchema } from './external.ts'
import { lineSchema, textSchema } from './scalars.ts'

const { codeChange, webFetch } = limits.record

const count = z.number().int().min(0).max(0xffff_ffff)
const lineNumber = count.min(1)

/** Text that may be empty, of at most `max` bytes of UTF-8. */
const looseText = (max: number) =>
  z
    .string()
    .max(max)
    .refine((text) => Buffer.byteLength(text) <= max && text.isWellFormed(), `has to be at most ${max} bytes`)

const text = looseText(codeChange.line)

/** One line of a hunk; an added one has no old number and a deleted one no new number. */
const diffLine = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('context'), old_line: lineNumber, new_line: lineNumber, text }),
  z.strictObject({ kind: z.literal('addition'), new_line: lineNumber, text }),
  z.strictObject({ kind: z.literal('deletion'), old_line: lineNumber, text }),
])

type Hunk = {
  old_start: number
  old_lines: number
  new_start: number
  new_lines: number
  lines: readonly z.infer<typeof diffLine>[]
}

const rangeAgrees = (hunk: Hunk): boolean => {
  const old = hunk.lines.flatMap((line) => ('old_line' in line ? [line.old_line] : []))
  const now = hunk.lines.flatMap((line) => ('new_line' in line ? [line.new_line] : []))
  return (
    hunk.old_start === (old[0] ?? 0) &&
    hunk.old_lines === old.length &&
    hunk.new_start === (now[0] ?? 0) &&
    hunk.new_lines === now.length
  )
}

const hunk = z
  .strictObject({
    old_start: count,
    old_lines: count,
    new_start: count,
    new_lines: count,
    lines: z.array(diffLine).min(1).max(codeChange.hunkLines),
  })
  .refine(rangeAgrees, 'the range has to agree with the lines')

const change = z
  .strictObject({
    path: textSchema(codeChange.path),
    kind: z.enum(['create', 'update', 'delete']),
    hunks: z.array(hunk).max(codeChange.hunks),
    truncated: z.boolean(),
    truncation: z.enum(['hunks', 'lines', 'line_bytes', 'patch_bytes']).optional(),
    patch: looseText(codeChange.patch).optional(),
    first_changed_line: lineNumber.optional(),
  })
  .refine(({ hunks }) => hunks.reduce((sum, { lines }) => sum + lines.length, 0) <= codeChange.lines, {
    message: `has to be at most ${codeChange.lines} lines`,
    path: ['hunks'],
  })
  .refine(({ truncated, truncation }) => truncated === (truncation !== undefined), {
    message: 'truncated and truncation have to agree',
    path: ['truncation'],
  })

const url = httpUrlSchema(webFetch.url)

/** Characters are Unicode scalar values. */
const isBody = (body: string): boolean =>
  !body.includes('\0') && body.isWellFormed() && [...body].length <= webFetch.bodyCharacters

const fetched = z.strictObject({
  requested_url: url,
  final_url: url,
  title: lineSchema(webFetch.title).optional(),
  mime_type: z
    .string()
    .min(1)
    .max(webFetch.mimeType)
    .regex(/^[A-Za-z0-9/.+\-;= ]+$/),
  body: z
    .string()
    .max(webFetch.bodyCharacters * 2)
    .refine(isBody, `has to be at most ${webFetch.bodyCharacters} characters, without NUL`),
  truncation: z
    .enum(['compressed_bytes', 'decoded_bytes', 'body_characters', 'parser_complexity'])
    .optional(),
  redirects: z
    .array(z.strictObject({ from: url, to: url, status: z.number().int().min(300).max(399) }))
    .max(webFetch.redirects)
    .default([]),
})

/** For people to look at, and kept out of what the model sees. */
export const presentationSchema = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('code_change'), value: change }),
  z.strictObject({ type: z.literal('web_fetch'), value: fetched }),
])
