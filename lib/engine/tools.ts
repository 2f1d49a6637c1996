import { z } from 'zod'
import { stampSchema } from '../journal/agent/envelope.ts'
import { branchSchema, isAgentFactType } from '../journal/agent/records.ts'
import { jsonObjectSchema } from '../journal/agent/scalars.ts'
import { limits } from '../limits.ts'
import { agentViewSchema, entriesSchema, refusalSchema, transcriptSchema } from '../session/agent-protocol.ts'
import { hasHidden } from '../text/visible.ts'

/** What a running engine may call and what of it is kept; the worker serves these as `POST /<name>`. */
export const toolLimits = {
  /** One call's body; every field at its limit fits, however it is escaped. */
  body: 64 * 1024,
  /** The body of a batch of records: a result and the message that tells it, each as large as an entry's data may be. */
  recordsBody: 2 * limits.entryData + 1024 * 1024,
  /** Open connections, each of which carries one call; more are closed unheard. */
  connections: 64,
  /** How long a call may take to arrive. */
  requestMs: 10_000,
  /** How long the end of the tools waits until a question that nobody waits for any more is put away. */
  closeMs: 2_000,
  summary: 300,
  evidence: 8192,
  requestId: 128,
  /** Requests of a model that are told apart; the usage of later ones is not known. */
  usageRequests: 10_000,
  tokens: 1_000_000_000,
  costUsd: 1_000_000,
  retryAfterSecs: 10 * 366 * 24 * 3600,
} as const

/** Answers that only a tool gives, with their HTTP status; all others are codes of lib/errors.ts. */
export const toolErrorStatus = { expired: 408, question_pending: 409, refused: 409 } as const
export type ToolErrorCode = keyof typeof toolErrorStatus

export const toolErrorSchema = z.strictObject({
  error: z.strictObject({
    code: z.string(),
    message: z.string(),
    /** Where the records do not validate. */
    errors: z.array(z.strictObject({ path: z.string(), message: z.string() })).optional(),
    /** The first record that can't follow what the journal holds, and why. */
    refusal: refusalSchema.optional(),
  }),
})
export type ToolError = z.infer<typeof toolErrorSchema>['error']

const text = (max: number) =>
  z
    .string()
    .refine((value) => value.trim() !== '', { error: 'has to say something' })
    .refine((value) => Buffer.byteLength(value) <= max, { error: `has to be at most ${max} bytes` })
    .refine((value) => value.isWellFormed() && !value.includes('\0'), {
      error: 'has to be well-formed Unicode without NUL',
    })

const line = (max: number) =>
  text(max).refine((value) => !hasHidden(value), { error: 'has to be one line without invisible characters' })

/** What a person made of a question (spec/coder-session.md 4.4). `refused`: it could not be put to anyone. */
export type AskOutcome =
  | { kind: 'answered'; text: string }
  | { kind: 'expired'; waited_secs: number }
  | { kind: 'refused'; reason: string }

export const noChangeKindSchema = z.enum(['already_satisfied', 'premise_wrong', 'not_reproducible'])

/** What an engine says when it finds that nothing should change; it nominates and decides nothing (7.1). */
const nominationSchema = z.strictObject({
  kind: noChangeKindSchema,
  summary: line(toolLimits.summary),
  evidence: text(toolLimits.evidence),
})
export type Nomination = z.infer<typeof nominationSchema>

export const engineStatusSchema = z.enum(['success', 'failed', 'rate_limited', 'auth_required'])

const time = z.iso.datetime({ precision: 3 })
const fitsTime = (value: string): boolean => {
  const date = new Date(value)
  return !Number.isNaN(date.getTime()) && time.safeParse(date.toISOString()).success
}

/** How an engine says that its run went; a rate limit without a reset time has an unknown one. */
const reportStatusSchema = z
  .strictObject({
    status: engineStatusSchema,
    reason: text(limits.reason).nullable().default(null),
    reset_at: z.iso
      .datetime({ offset: true })
      .refine(fitsTime, { error: 'is out of range' })
      .nullable()
      .default(null),
    retry_after_secs: z.number().min(0).max(toolLimits.retryAfterSecs).nullable().default(null),
  })
  .refine(({ reset_at, retry_after_secs }) => reset_at === null || retry_after_secs === null, {
    error: 'reset_at and retry_after_secs exclude each other',
  })
  .refine(
    ({ status, reset_at, retry_after_secs }) =>
      status === 'rate_limited' || (reset_at === null && retry_after_secs === null),
    { error: 'only rate_limited has a reset_at or retry_after_secs' },
  )
export type ReportStatus = z.infer<typeof reportStatusSchema>

const tokens = z.number().int().min(0).max(toolLimits.tokens).nullable().default(null)

/** What one request to a model used. Null, or left out, is unknown and not zero. */
const reportUsageSchema = z.strictObject({
  request_id: line(toolLimits.requestId),
  input_tokens: tokens,
  output_tokens: tokens,
  cost_usd: z.number().min(0).max(toolLimits.costUsd).nullable().default(null),
})
export type ReportUsage = z.infer<typeof reportUsageSchema>

/** What a person said for the work to take into account. */
const guidanceMessageSchema = z.strictObject({ id: z.string(), text: z.string() })
export type GuidanceMessage = z.infer<typeof guidanceMessageSchema>

const { causation_id, correlation_id, metadata } = stampSchema.shape

/** A record of the agent (spec/session-record.md B.4) as an engine states it; its id and its time are given to it. */
const recordSchema = z.strictObject({
  type: z.string().refine(isAgentFactType, { error: 'is no record of the agent' }),
  data: jsonObjectSchema({ bytes: limits.entryData, depth: limits.record.lineDepth }),
  branch: branchSchema.exactOptional(),
  ...{ causation_id, correlation_id, metadata },
})

/** Each tool by its name: what a call has to say and what it is answered with 200. Fields that are not known are refused. */
export const tools = {
  ask_user: {
    input: z.strictObject({ prompt: text(limits.question) }),
    answer: z.strictObject({ text: z.string() }),
  },
  guidance: {
    input: z.strictObject({}),
    answer: z.strictObject({ messages: z.array(guidanceMessageSchema) }),
  },
  /**
   * Appends records, all or nothing; answered once they are durable. A call that broke off can be repeated under the same
   * `batch_id` within this run.
   */
  append_records: {
    input: z.strictObject({
      batch_id: line(64).optional(),
      records: z.array(recordSchema).min(1).max(limits.statedBatch),
    }),
    answer: z.strictObject({ records: entriesSchema.shape.records }),
  },
  /** What the records of this session come to, for a restarted engine to go on from. */
  journal_state: {
    input: z.strictObject({}),
    answer: z.strictObject({ ...agentViewSchema.shape, ...transcriptSchema.shape }),
  },
  report_no_change: {
    input: nominationSchema,
    answer: z.strictObject({ status: z.literal('nominated') }),
  },
  report_status: {
    input: reportStatusSchema,
    answer: z.strictObject({ status: z.literal('recorded') }),
  },
  /** `dropped`: more requests were reported than are told apart, and this one is in no total. */
  report_usage: {
    input: reportUsageSchema,
    answer: z.strictObject({ status: z.enum(['recorded', 'dropped']) }),
  },
} as const

/** Everything that an engine reported in one run. It is the engine's word and nothing more. */
export const reportsSchema = z.strictObject({
  /** The last one; `reset_at` is null where unknown. */
  status: z
    .strictObject({
      status: engineStatusSchema,
      reason: z.string().nullable(),
      reset_at: time.nullable(),
    })
    .nullable(),
  /** The last one. */
  nomination: nominationSchema.nullable(),
  /** Sums of what is known; null where nothing is. `complete` says that no report left anything out. */
  usage: z
    .strictObject({
      requests: z.number().int(),
      input_tokens: z.number().int().nullable(),
      output_tokens: z.number().int().nullable(),
      cost_usd: z.number().nullable(),
      complete: z.boolean(),
    })
    .nullable(),
  /** Ids of the guidance that was handed out, in that order. */
  applied: z.array(z.string()),
})
export type Reports = z.infer<typeof reportsSchema>

/** Collects what an engine reports in one run; `now` gives epoch milliseconds. */
export const createCollector = (now: () => number) => {
  let status: Reports['status'] = null
  let nomination: Reports['nomination'] = null
  const requests = new Map<string, Usage>()
  let dropped = false
  const applied = new Set<string>()

  return {
    status: (told: ReportStatus): void => {
      status = { status: told.status, reason: told.reason, reset_at: resetAt(told, now()) }
    },

    nominate: (told: Nomination): void => {
      nomination = told
    },

    /** A repeated request counts once: what it says now replaces what it said, and what it leaves out stays. */
    usage: ({ request_id, ...told }: ReportUsage): 'recorded' | 'dropped' => {
      const known = requests.get(request_id)
      if (known === undefined && requests.size >= toolLimits.usageRequests) {
        dropped = true
        return 'dropped'
      }
      requests.set(request_id, known === undefined ? told : newest(known, told))
      return 'recorded'
    },

    /** The messages that were not handed out before; they count as handed out from here on. */
    handOut: (messages: readonly GuidanceMessage[]): GuidanceMessage[] =>
      messages.filter(({ id }) => {
        if (applied.has(id)) return false
        applied.add(id)
        return true
      }),

    reports: (): Reports => ({
      status,
      nomination,
      usage: requests.size === 0 ? null : totals([...requests.values()], dropped),
      applied: [...applied],
    }),
  }
}

type Usage = Omit<ReportUsage, 'request_id'>

const newest = (known: Usage, told: Usage): Usage => ({
  input_tokens: told.input_tokens ?? known.input_tokens,
  output_tokens: told.output_tokens ?? known.output_tokens,
  cost_usd: told.cost_usd ?? known.cost_usd,
})

const totals = (requests: readonly Usage[], dropped: boolean): NonNullable<Reports['usage']> => ({
  requests: requests.length,
  input_tokens: sum(requests.map((usage) => usage.input_tokens)),
  output_tokens: sum(requests.map((usage) => usage.output_tokens)),
  cost_usd: sum(requests.map((usage) => usage.cost_usd)),
  complete: !dropped && requests.every((usage) => !Object.values(usage).includes(null)),
})

const sum = (values: readonly (number | null)[]): number | null =>
  values.reduce((total, value) => (value === null ? total : (total ?? 0) + value), null)

const resetAt = ({ reset_at, retry_after_secs }: ReportStatus, now: number): string | null => {
  if (reset_at !== null) return new Date(reset_at).toISOString()
  if (retry_after_secs === null) return null
  return new Date(Math.ceil(now + retry_after_secs * 1000)).toISOString()
}
