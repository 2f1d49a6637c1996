import { z } from 'zod'
import { capturesSchema } from '../contract/capture.ts'
import { checkResultSchema, contractSchema, provenanceSchema } from '../contract/schema.ts'
import { idSchema } from '../ids.ts'
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
  kind: z.enum(['already_satisfied', 'premise_wrong', 'not_reproducible']),
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
})

/** How one run of an engine ended, from its process's end and the files alone. */
export const engineRunSchema = z.strictObject({
  status: z.enum(['finished', 'failed', 'unavailable', 'killed', 'timed_out', 'cancelled']),
  exit_code: z.number().int().nullable(),
  signal: z.string().nullable(),
  duration_ms: z.number().int(),
  output_bytes: z.number().int(),
  artifact: z.string().nullable(),
  /** Processes of the engine that could not be ended. */
  survivors: z.number().int(),
  /** Whether the files differ from what they were before this iteration. */
  changed: z.boolean(),
})

/** One question that waits for a person, with its one decision. */
export const gateSchema = z.strictObject({
  id: idSchema('gate'),
  kind: z.enum(['contract', 'approval']),
  label: z.string(),
  opened_at: time,
  deadline_at: time,
})

/** The part of a session that the journal's records fold to, byte for byte (DESIGN 3, invariant 3). */
export const documentSchema = z.strictObject({
  id: idSchema('ses'),
  team: z.string(),
  repo: z.string(),
  intent: z.string(),
  requested_base: z.string().nullable(),
  base: sha.nullable(),
  start_commit: sha.nullable(),
  requested_engine: z.string(),
  engine: z.string(),
  engine_ran: z.string().nullable(),
  engine_command: engineCommandSchema.nullable(),
  state: stateSchema,
  step: stepSchema,
  stage: stageSchema,
  mode: z.enum(['supervise', 'auto']),
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
  iterations: z.number().int(),
  max_iterations: z.number().int(),
  /** Iterations that had been used when a person last set the work going; repairs are counted from here. */
  round_started_at: z.number().int(),
  /** An iteration was started and its evaluation is still to come. */
  iteration_open: z.boolean(),
  repair_invokes: z.number().int().nullable(),
  transient_retries: z.number().int().nullable(),
  max_wall_secs: z.number().int(),
  deadline_at: time.nullable(),
  consecutive_failures: z.number().int(),
  infra_failures: z.number().int(),
  preflight_retries: z.number().int(),
  checkpoint_resumes: z.number().int(),
  checkpoint: checkpointSchema.nullable(),
  gate: gateSchema.nullable(),
  review_identity: reviewIdentitySchema.nullable(),
  /** Totals of the review's diff, and the artifact with the rest of the review. */
  review_stat: statSchema.nullable(),
  review_artifact: z.string().nullable(),
  no_change_finding: findingSchema.nullable(),
  delivery: z.strictObject({ kind: z.literal('branch'), branch: z.string().nullable() }),
  result_branch: z.string().nullable(),
  result_commit: sha.nullable(),
  result_delivery: z.string().nullable(),
  delivery_problem: z.string().nullable(),
  steering_messages: z.array(z.string()),
  cost_usd: z.number().nullable(),
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
