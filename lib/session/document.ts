import { z } from 'zod'
import { capturesSchema } from '../contract/capture.ts'
import { checkResultSchema, contractSchema, provenanceSchema } from '../contract/schema.ts'
import { disclosureKindSchema } from '../disclosure/kinds.ts'
import { noChangeKindSchema } from '../engine/tools.ts'
import { idSchema } from '../ids.ts'
import { excesses } from '../process/bounds/excess.ts'
import { engineCommandSchema } from './start.ts'
import { failureKindSchema, stageSchema, stateSchema, stepSchema } from './states.ts'

const sha = z.string().regex(/^[0-9a-f]{40,64}$/)
const time = z.iso.datetime({ precision: 3 })

/** Diff totals from the base to the commit; never truncated. */
export const statSchema = z.strictObject({
  files: z.number().int(),
  insertions: z.number().int(),
  deletions: z.number().int(),
})

/** Exactly what a reviewer was shown (spec/coder-session.md 2.6, 10); an approval holds for this and nothing else. */
export const reviewIdentitySchema = z.strictObject({
  review_id: idSchema('rev'),
  kind: z.enum(['change', 'finding']),
  base: sha,
  commit: sha,
  tree: sha,
  contract_hash: z.string(),
})

/** A conclusion that nothing should change (spec/coder-session.md 2.5). */
export const findingSchema = z.strictObject({
  kind: noChangeKindSchema,
  summary: z.string(),
  evidence: z.string(),
  verification: z.enum(['runtime_baseline_green', 'human_approved']).nullable(),
  proposed_at: time,
  resolved_at: time.nullable(),
  resolver_comment: z.string().nullable(),
  baseline_checks: z.array(checkResultSchema),
})

/** Work in progress as it was saved after a command: a private commit and, where it adds to the base, its bundle in S3. */
export const checkpointSchema = z.strictObject({
  id: z.string(),
  commit: sha,
  tree: sha,
  bundle: z.string().nullable(),
  /** SHA-256 of the bundle's bytes in hex, as the worker that made it counted them; null where there is no bundle. */
  bundle_sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .nullable()
    .default(null),
})

/** How one run of an engine ended, from its process's end and the files alone. */
export const engineRunSchema = z.strictObject({
  status: z.enum([
    ...(['finished', 'failed', 'unavailable', 'killed', 'timed_out', 'cancelled', 'over_budget'] as const),
    ...excesses,
  ]),
  exit_code: z.number().int().nullable(),
  signal: z.string().nullable(),
  duration_ms: z.number().int(),
  output_bytes: z.number().int(),
  artifact: z.string().nullable(),
  /** Processes of the engine that could not be ended. */
  survivors: z.number().int(),
  /** Whether the files differ from what they were before this iteration. */
  changed: z.boolean(),
  /** Whether any file of the work was written to, be it with what it held before. */
  touched: z.boolean().default(true),
})

/** What an engine's turn came to (spec/workflow-state.md C.4), with the layer that decided it and why. */
export const turnSchema = z.strictObject({
  iteration: z.number().int(),
  status: z.enum([
    'success',
    'failed',
    'unknown',
    'rate_limited',
    'auth_required',
    'resource_killed',
    'agent_unavailable',
    'timed_out',
    'over_budget',
  ]),
  /** 0 the contract, 1 the engine's own report, 2 its exit and the files, 3 neither: its process is gone. */
  decided_by_layer: z.number().int().min(0).max(3),
  reason: z.string(),
  /** When a rate limit lifts; null when that is not known. */
  reset_at: time.nullable(),
})
export type Turn = z.infer<typeof turnSchema>

/** What an engine said when it held that nothing should change (spec/coder-session.md 7.1): a nomination, no decision. */
export const nominationSchema = findingSchema.pick({ kind: true, summary: true, evidence: true })

/** What engines said they used. A member that no engine told is null and never 0; `complete` says that none was left out. */
export const usageSchema = z.strictObject({
  input_tokens: z.number().nullable(),
  output_tokens: z.number().nullable(),
  cost_usd: z.number().nullable(),
  complete: z.boolean(),
})
export type Usage = z.infer<typeof usageSchema>
/** What is known of usage where nobody told any. */
export const unknownUsage: Usage = {
  input_tokens: null,
  output_tokens: null,
  cost_usd: null,
  complete: false,
}

/** What a running engine asks a person (spec/coder-session.md 4.4); at most one waits at a time. */
export const questionSchema = z.strictObject({
  request_id: idSchema('req'),
  prompt: z.string(),
  asked_at: time,
  deadline_at: time,
  /** `withdrawn`: its engine ended before it was answered. */
  status: z.enum(['pending', 'answered', 'expired', 'withdrawn']),
  answer: z.string().nullable(),
  answered_by: z.string().nullable(),
})

export const gateKindSchema = z.enum(['contract', 'approval', 'preflight', 'validate'])

/** One question that waits for a person, with its one decision. */
export const gateSchema = z.strictObject({
  id: idSchema('gate'),
  kind: gateKindSchema,
  label: z.string(),
  /** Why it is asked, for the person who answers. */
  context: z.string().default(''),
  /** What led here: the ordinary road, red checks, a run that can't go on, or a setup that fails. */
  cause: z.enum(['road', 'red', 'interrupted', 'setup']).default('road'),
  /** The session's mode would have asked nobody here. */
  unexpected: z.boolean().default(false),
  opened_at: time,
  deadline_at: time,
})

/** Shipping that was authorised at the start, by whom, and whether a person's answer at a review has taken its place. */
export const yesShipSchema = z.strictObject({ by: z.string(), void: z.boolean() })

/**
 * The part of a session that the journal's records fold to, byte for byte (DESIGN 3, invariant 3). Members that came
 * later have a default, so that what was written before them can be read.
 */
export const documentSchema = z.strictObject({
  id: idSchema('ses'),
  team: z.string(),
  repo: z.string(),
  intent: z.string(),
  requested_base: z.string().nullable(),
  base: sha.nullable(),
  start_commit: sha.nullable(),
  /** The tree of `start_commit`: whether anything changed is judged against it. */
  start_tree: sha.nullable().default(null),
  /** What a person has to know of where the work comes from, such as files of theirs that no commit holds. */
  source_warnings: z.array(z.string()).default([]),
  /** The session whose unfinished work or delivered commit this one goes on from. */
  resumed_from: idSchema('ses').nullable().default(null),
  requested_engine: z.string(),
  engine: z.string(),
  engine_ran: z.string().nullable(),
  engine_command: engineCommandSchema.nullable(),
  state: stateSchema,
  step: stepSchema,
  stage: stageSchema,
  mode: z.enum(['supervise', 'auto']),
  /** The last stage to run; null to go to the end. */
  until: stageSchema.nullable().default(null),
  /** Halted on purpose at the end of a stage; no failure, and no execution runs. */
  stopped: z.boolean().default(false),
  stop_reason: z.string().nullable().default(null),
  /** The step that a stopped session goes on with. */
  resume_at: stepSchema.nullable().default(null),
  yes_ship: yesShipSchema.nullable().default(null),
  verify: z.enum(['clean', 'worktree']),
  contract: contractSchema.nullable(),
  contract_hash: z.string().nullable(),
  contract_provenance: provenanceSchema.nullable(),
  baseline: z.array(checkResultSchema),
  baseline_gates_nothing: z.boolean(),
  /** Artifact with the same results and their outputs, which the item itself doesn't hold. */
  baseline_artifact: z.string().nullable(),
  /** What the baseline's capture checks found, for differential checks to compare with. */
  captures: capturesSchema,
  last_check_results: z.array(checkResultSchema),
  last_results_artifact: z.string().nullable(),
  /** Names of the checks whose failing output has been the same on the untouched tree and at every evaluation since. */
  same_output: z.array(z.string()).default([]),
  iterations: z.number().int(),
  max_iterations: z.number().int(),
  /** Iterations that had been used when a person last set the work going; repairs are counted from here. */
  round_started_at: z.number().int(),
  /** An iteration was started and its evaluation is still to come. */
  iteration_open: z.boolean(),
  repair_invokes: z.number().int().nullable(),
  transient_retries: z.number().int().nullable(),
  /** Runs that were made anew because their process had died, since a person last set the work going. */
  retries_used: z.number().int().default(0),
  max_wall_secs: z.number().int(),
  deadline_at: time.nullable(),
  budget_usd: z.number().nullable().default(null),
  consecutive_failures: z.number().int(),
  infra_failures: z.number().int(),
  preflight_retries: z.number().int(),
  checkpoint_resumes: z.number().int(),
  /** Validate failures of the whole session; nothing resets it. */
  total_failures: z.number().int().default(0),
  last_turn: turnSchema.nullable().default(null),
  nomination: nominationSchema.nullable().default(null),
  /** The mutation ledger (spec/coder-session.md 7.3): once an engine has written to a file, it stays true. */
  mutated: z.boolean().default(true),
  /** Names of the checks that a person let through red; only for the work that they saw. */
  accepted_red: z.array(z.string()).default([]),
  /** The rate limit that the session waits for, with nothing running and the run's clock standing still. */
  rate_limit: z.strictObject({ reset_at: time, since: time }).nullable().default(null),
  question: questionSchema.nullable().default(null),
  checkpoint: checkpointSchema.nullable(),
  gate: gateSchema.nullable(),
  review_identity: reviewIdentitySchema.nullable(),
  /** Totals of the review's diff, and the artifact with the rest of the review. */
  review_stat: statSchema.nullable(),
  review_artifact: z.string().nullable(),
  /** Kinds of what the review discloses beside its patch; with any of them nothing is shipped by itself. */
  review_disclosed: z.array(disclosureKindSchema).default([]),
  no_change_finding: findingSchema.nullable(),
  delivery: z.strictObject({ kind: z.literal('branch'), branch: z.string().nullable() }),
  result_branch: z.string().nullable(),
  result_commit: sha.nullable(),
  result_delivery: z.string().nullable(),
  /** What the base named at delivery, where that was no more the commit that the work was made and reviewed on. */
  base_moved_to: sha.nullable().default(null),
  delivery_problem: z.string().nullable(),
  steering_messages: z.array(z.string()),
  /** How many of the first of them an engine has been given. */
  guidance_applied: z.number().int().default(0),
  usage: usageSchema.prefault(unknownUsage),
  keep_workspace_on_failure: z.boolean().default(false),
  keep_workspace_on_cancel: z.boolean().default(false),
  /** The last checkpoint outlives the session, for another to go on from. */
  retained_work: z.boolean().default(false),
  /** The open review was shown to be unchanged after the service had to take the session up again. */
  review_restored: z.boolean().default(false),
  labels: z.record(z.string(), z.string()),
  requested_by: z.string(),
  decided_by: z.string().nullable(),
  failure_kind: failureKindSchema.nullable(),
  error: z.string().nullable(),
  execution_stopped: z.boolean(),
  created_at: time,
  updated_at: time,
})

export type Document = z.infer<typeof documentSchema>
export type Gate = z.infer<typeof gateSchema>
