import { z } from 'zod'
import { contractSchema } from '../contract/schema.ts'
import { limits } from '../limits.ts'
import { hasHidden } from '../text/visible.ts'
import { stageSchema } from './states.ts'

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

const label = z
  .string()
  .max(limits.labelText)
  .refine((text) => !hasHidden(text), { error: 'has to be one line without invisible characters' })

export const labelsSchema = z
  .record(label.min(1).max(64), label)
  .refine((labels) => Object.keys(labels).length <= limits.labels, {
    error: `has to hold at most ${limits.labels} labels`,
  })

/** What a request may say beside the repository and the intent. */
const options = {
  engine: z.string().min(1).max(128),
  engine_command: engineCommandSchema.nullable(),
  contract: contractSchema.nullable(),
  verify: z.enum(['clean', 'worktree']),
  mode: z.enum(['supervise', 'auto']),
  until: stageSchema.nullable(),
  yes_ship: z.boolean(),
  model: z.string().min(1).max(128).nullable(),
  max_iterations: z.number().int().min(1).max(limits.iterations.max),
  max_wall_secs: z.number().int().min(1).max(limits.wallSecs.max),
  budget_usd: z.number().positive().nullable(),
  repair_invokes: z.number().int().min(0).max(limits.repairInvokes.max).nullable(),
  transient_retries: z.number().int().min(0).max(limits.transientRetries.max).nullable(),
  delivery: z.strictObject({
    kind: z.enum(['branch', 'pull_request', 'patch', 'project_main']).default('branch'),
    branch: z.string().min(1).max(200).nullable().default(null),
    title: z.string().min(1).max(256).nullable().default(null),
  }),
  keep_workspace_on_failure: z.boolean(),
  keep_workspace_on_cancel: z.boolean(),
  distributed: z.boolean(),
  workers: z.array(z.string()).max(64),
  browser: z.boolean(),
  constraints: z.array(z.string().min(1).max(1024)).max(32),
  labels: labelsSchema,
}

/** The body of POST /v1/sessions (API.md, StartSession); only `repo` and `intent` are required. */
export const startSessionSchema = z.strictObject({
  repo: z.string().min(1).max(4096),
  intent: intentSchema,
  base: z.string().min(1).max(1024).nullable().default(null),
  engine: options.engine.default('auto'),
  engine_command: options.engine_command.default(null),
  contract: options.contract.default(null),
  verify: options.verify.default('clean'),
  mode: options.mode.default('supervise'),
  until: options.until.default(null),
  yes_ship: options.yes_ship.default(false),
  model: options.model.default(null),
  max_iterations: options.max_iterations.default(limits.iterations.default),
  max_wall_secs: options.max_wall_secs.default(limits.wallSecs.default),
  budget_usd: options.budget_usd.default(null),
  repair_invokes: options.repair_invokes.default(null),
  transient_retries: options.transient_retries.default(null),
  delivery: options.delivery.prefault({}),
  keep_workspace_on_failure: options.keep_workspace_on_failure.default(false),
  keep_workspace_on_cancel: options.keep_workspace_on_cancel.default(false),
  distributed: options.distributed.default(false),
  workers: options.workers.default([]),
  browser: options.browser.default(false),
  constraints: options.constraints.default([]),
  labels: options.labels.default({}),
})
export type StartSession = z.infer<typeof startSessionSchema>

/** The body of POST /v1/sessions/{id}/continue: a new intent, and what is to differ from the session before. */
export const continueSessionSchema = z.strictObject(options).partial().extend({ intent: intentSchema })
export type ContinueSession = z.infer<typeof continueSessionSchema>

/**
 * What a request asks for that this version does not do, in words; empty when all of it is there. Such a request is
 * refused: an option that is silently ignored would be a promise that nobody keeps.
 */
export const unavailableOptions = (start: StartSession): { path: string; message: string }[] => {
  const refusals: [boolean, string, string][] = [
    [start.until === 'ship', 'until', 'ship is the last stage: leave until out to run to the end'],
    [start.model !== null, 'model', 'engine external:command chooses no model'],
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
