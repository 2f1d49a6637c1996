import { z } from 'zod'
import { contractSchema } from '../contract/schema.ts'
import { limits } from '../limits.ts'

const bytesAtMost = (max: number) => (text: string) => Buffer.byteLength(text) <= max

/** The command of engine `external:command`: a shell line, or an argument list that runs without a shell. */
export const engineCommandSchema = z.union([
  z.string().min(1).max(limits.command),
  z.array(z.string().max(limits.command)).min(1).max(256),
])

export const intentSchema = z
  .string()
  .trim()
  .min(1)
  .refine(bytesAtMost(limits.intent), { error: `has to be at most ${limits.intent} bytes` })
  .refine((text) => !text.includes('\0'), { error: 'has to be free of NUL' })

export const labelsSchema = z
  .record(z.string().min(1).max(64), z.string().max(limits.labelText))
  .refine((labels) => Object.keys(labels).length <= limits.labels, {
    error: `has to hold at most ${limits.labels} labels`,
  })

/** The body of POST /v1/sessions (API.md, StartSession); only `repo` and `intent` are required. */
export const startSessionSchema = z.strictObject({
  repo: z.string().min(1).max(4096),
  intent: intentSchema,
  base: z.string().min(1).max(1024).nullable().default(null),
  engine: z.string().min(1).max(128).default('auto'),
  engine_command: engineCommandSchema.nullable().default(null),
  contract: contractSchema.nullable().default(null),
  verify: z.enum(['clean', 'worktree']).default('clean'),
  mode: z.enum(['supervise', 'auto']).default('supervise'),
  until: z.enum(['define', 'plan', 'code', 'validate', 'ship']).nullable().default(null),
  yes_ship: z.boolean().default(false),
  model: z.string().min(1).max(128).nullable().default(null),
  max_iterations: z.number().int().min(1).max(limits.iterations.max).default(limits.iterations.default),
  max_wall_secs: z.number().int().min(1).max(limits.wallSecs.max).default(limits.wallSecs.default),
  budget_usd: z.number().positive().nullable().default(null),
  repair_invokes: z.number().int().min(0).max(limits.repairInvokes.max).nullable().default(null),
  transient_retries: z.number().int().min(0).max(limits.transientRetries.max).nullable().default(null),
  delivery: z
    .strictObject({
      kind: z.enum(['branch', 'pull_request', 'patch', 'project_main']).default('branch'),
      branch: z.string().min(1).max(200).nullable().default(null),
      title: z.string().min(1).max(256).nullable().default(null),
    })
    .prefault({}),
  keep_workspace_on_failure: z.boolean().default(false),
  keep_workspace_on_cancel: z.boolean().default(false),
  distributed: z.boolean().default(false),
  workers: z.array(z.string()).max(64).default([]),
  browser: z.boolean().default(false),
  constraints: z.array(z.string().min(1).max(1024)).max(32).default([]),
  labels: labelsSchema.default({}),
})
export type StartSession = z.infer<typeof startSessionSchema>

/**
 * What a request asks for that this version does not do, in words; empty when all of it is there. Such a request is
 * refused: an option that is silently ignored would be a promise that nobody keeps.
 */
export const unavailableOptions = (start: StartSession): { path: string; message: string }[] => {
  const refusals: [boolean, string, string][] = [
    [start.until !== null, 'until', 'stopping at a stage is not available yet'],
    [start.yes_ship, 'yes_ship', 'pre-authorised shipping is not available yet; approve the review instead'],
    [start.model !== null, 'model', 'engine external:command chooses no model'],
    [
      start.budget_usd !== null,
      'budget_usd',
      'the cost of external:command is unknown, so a budget could not be kept',
    ],
    [start.delivery.kind !== 'branch', 'delivery.kind', 'only branch is available'],
    [
      start.delivery.branch !== null,
      'delivery.branch',
      'the branch is gatehouse/<short-id>; another name is not available yet',
    ],
    [
      start.delivery.title !== null,
      'delivery.title',
      'a title belongs to a pull request, which is not available yet',
    ],
    [
      start.keep_workspace_on_failure,
      'keep_workspace_on_failure',
      'continuing retained work is not available yet',
    ],
    [
      start.keep_workspace_on_cancel,
      'keep_workspace_on_cancel',
      'continuing retained work is not available yet',
    ],
    [start.distributed, 'distributed', 'only engine foreman distributes work'],
    [start.workers.length > 0, 'workers', 'only engine foreman distributes work'],
    [start.browser, 'browser', 'only engine native has browser tools'],
    [
      start.constraints.length > 0,
      'constraints',
      'constraints from a discussion are not available yet; put them in the intent',
    ],
  ]
  return refusals.filter(([asked]) => asked).map(([, path, message]) => ({ path, message }))
}
