import { z } from 'zod'
import { limits } from '../limits.ts'
import { excesses } from '../process/bounds/excess.ts'

/** How a check's output is compared with a named baseline capture (spec/coder-session.md 2.3). */
export const differentialSchema = z.strictObject({
  baseline: z.string().min(1).max(limits.checkName),
  expect: z.union([
    z.enum(['changed', 'unchanged']),
    z.strictObject({
      delta_within: z.strictObject({ min: z.number().optional(), max: z.number().optional() }),
    }),
  ]),
})

/** One shell check of a contract; the command runs at the tree's root. */
export const contractCheckSchema = z.strictObject({
  name: z.string().min(1).max(limits.checkName),
  command: z.string().min(1).max(limits.command),
  expect_exit_zero: z.boolean().default(true),
  /** Substring that the combined output has to hold, or `$json:<pointer>=<json>` for a value in JSON output. */
  output_contains: z.string().min(1).max(limits.command).nullable().default(null),
  timeout_secs: z
    .number()
    .int()
    .min(1)
    .max(limits.checkTimeoutSecs.max)
    .default(limits.checkTimeoutSecs.default),
  /** The check is repeated this often; runs that disagree make it flaky, which is not green. */
  runs: z.number().int().min(1).max(limits.checkRuns).default(1),
  /** Only captured on the untouched tree, for a differential check to compare with; never a verdict. */
  baseline: z.boolean().default(false),
  differential: differentialSchema.nullable().default(null),
})

/** What "done" means: all checks pass (spec/coder-session.md 2.3). */
export const contractSchema = z.strictObject({
  description: z.string().max(4096).default(''),
  allow_credentials: z.boolean().default(false),
  /** Run once in each fresh tree, before its checks; a failing one is a preflight failure, never a verdict. */
  setup: z.array(z.string().min(1).max(limits.command)).max(limits.setupCommands).default([]),
  /** gitignore-style patterns of paths that the result leaves exactly as the base has them. */
  protect: z.array(z.string().min(1).max(1024)).max(limits.protectPatterns).default([]),
  checks: z.array(contractCheckSchema).max(limits.checks),
})

/** Where a contract's bytes came from; only `isTrusted` reads anything into it. */
export const provenanceSchema = z.enum([
  'operator_supplied',
  'human_confirmed',
  'runtime_generated',
  'model_derived',
])

/** A check's outcome. A check that could not run is no verdict on the work (DESIGN 3, invariant 9). */
export const verdictSchema = z.enum(['passed', 'failed', 'could_not_run', 'flaky', 'captured'])

/** Why a verdict is what it is, for a program to branch on. */
export const verdictReasonSchema = z.enum([
  'ok',
  'exit_code',
  /** Failed, with output that makes one think of what surrounds the check; still a verdict on the work. */
  'suspect_environment',
  'output_missing',
  'output_not_json',
  'differential',
  'protected_path_changed',
  'embedded_repository',
  'command_not_found',
  'not_executable',
  'runner_missing',
  'spawn_failed',
  /** Above the tree stood what tools look for, so that the check would not have judged the tree alone. */
  'foreign_surroundings',
  'signal',
  'timed_out',
  'deadline',
  ...excesses,
  'runs_disagree',
  'capture',
  'capture_missing',
  'setup_failed',
  'cancelled',
])

export const checkResultSchema = z.strictObject({
  name: z.string(),
  passed: z.boolean(),
  verdict: verdictSchema,
  reason: verdictReasonSchema,
  exit_code: z.number().int().nullable(),
  signal: z.string().nullable(),
  output_head: z.string(),
  output_tail: z.string(),
  /** Size of the whole combined output, of which head and tail are parts. */
  output_bytes: z.number().int().min(0),
  /** Name of the artifact that holds the full output. */
  artifact: z.string().nullable(),
  duration_ms: z.number().int().min(0),
  timed_out: z.boolean(),
  /** The limit that killed it was the session's remaining time, not the check's own. */
  deadline_clamped: z.boolean(),
  runs: z.number().int().min(0),
  /** Of a failed check: the line of its output that makes one think of its environment rather than of the work. */
  suspicion: z.string().exactOptional(),
  /** Of a check that is not green: SHA-256 of its output without times, durations, temporary paths and hex ids. */
  output_digest: z.string().exactOptional(),
})

export type Contract = z.infer<typeof contractSchema>
export type ContractCheck = z.infer<typeof contractCheckSchema>
export type Provenance = z.infer<typeof provenanceSchema>
export type Verdict = z.infer<typeof verdictSchema>
export type VerdictReason = z.infer<typeof verdictReasonSchema>
export type CheckResult = z.infer<typeof checkResultSchema>
