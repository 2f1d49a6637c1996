import { z } from 'zod'
import { capturesSchema } from '../contract/capture.ts'
import { checkResultSchema, contractSchema, provenanceSchema } from '../contract/schema.ts'
import { disclosureKindSchema } from '../disclosure/kinds.ts'
import { idSchema } from '../ids.ts'
import {
  checkpointSchema,
  documentSchema,
  engineRunSchema,
  findingSchema,
  gateSchema,
  nominationSchema,
  reviewIdentitySchema,
  statSchema,
  turnSchema,
  unknownUsage,
  usageSchema,
} from '../session/document.ts'
import { failureKindSchema, stageSchema, stateSchema, stepSchema } from '../session/states.ts'
import { creationSchema } from './agent/records.ts'
import { factSchema as fact } from './fact.ts'

const results = z.array(checkResultSchema)

/** The facts of a session's life: what its document is folded from, each by its data alone. */
export const lifecycleFactSchema = z.discriminatedUnion('type', [
  fact(
    'session_created',
    documentSchema
      .pick({
        id: true,
        team: true,
        repo: true,
        intent: true,
        requested_base: true,
        requested_engine: true,
        engine: true,
        engine_command: true,
        mode: true,
        until: true,
        verify: true,
        contract: true,
        contract_hash: true,
        contract_provenance: true,
        max_iterations: true,
        repair_invokes: true,
        transient_retries: true,
        max_wall_secs: true,
        budget_usd: true,
        keep_workspace_on_failure: true,
        keep_workspace_on_cancel: true,
        delivery: true,
        labels: true,
        requested_by: true,
        /** What a continuation takes over from the session before it; the checkpoint is of its unfinished work. */
        resumed_from: true,
        steering_messages: true,
        checkpoint: true,
      })
      .extend({
        yes_ship: z.strictObject({ by: z.string() }).nullable().default(null),
        /** The agent's first record as it was imported, where it is another than this one comes to by itself. */
        agent: creationSchema.shape.data.optional(),
      }),
  ),
  /** What was missing at preflight; `retries` counts the gates that were opened for it. */
  fact(
    'preflight_failed',
    z.strictObject({
      problems: z.array(z.strictObject({ failure_kind: failureKindSchema, detail: z.string() })),
      retries: z.number().int(),
    }),
  ),
  /** A machine step ended; `next` is the step that follows. */
  fact('step_completed', z.strictObject({ step: stepSchema, trigger: z.string(), next: stepSchema })),
  fact('state_changed', z.strictObject({ from: stateSchema, to: stateSchema, trigger: z.string() })),
  fact(
    'workspace_prepared',
    z.strictObject({
      base: z.string(),
      start_commit: z.string(),
      tree: z.string(),
      /** What a person has to know of where the work comes from, as sentences. */
      warnings: z.array(z.string()).default([]),
    }),
  ),
  fact(
    'contract_proposed',
    z.strictObject({
      contract: contractSchema,
      contract_hash: z.string(),
      provenance: provenanceSchema,
      sources: z.array(z.string()),
      warnings: z.array(z.string()),
    }),
  ),
  fact(
    'contract_baseline',
    z.strictObject({ results, gates_nothing: z.boolean(), captures: capturesSchema, artifact: z.string() }),
  ),
  fact(
    'contract_confirmed',
    z.strictObject({
      contract: contractSchema,
      contract_hash: z.string(),
      provenance: provenanceSchema,
    }),
  ),
  fact('gate_opened', gateSchema),
  fact(
    'gate_resolved',
    z.strictObject({
      gate_id: idSchema('gate'),
      action: z.enum([
        ...['confirm', 'revise', 'approve', 'reject', 'changes', 'cancel', 'expire'],
        ...['advance', 'loop_back', 'abort'],
      ] as const),
      by: z.string(),
      comment: z.string().nullable(),
      /** Nobody was asked: what was authorised or proven before decided. */
      automatic: z.boolean().default(false),
    }),
  ),
  /** `until` held the session back at the end of a stage; it goes on with `resume_at`. */
  fact('run_stopped', z.strictObject({ stage: stageSchema, resume_at: stepSchema, reason: z.string() })),
  fact('run_resumed', z.strictObject({ until: stageSchema.nullable(), by: z.string() })),
  fact('run_started', z.strictObject({ deadline_at: z.iso.datetime({ precision: 3 }) })),
  fact('iteration_started', z.strictObject({ n: z.number().int(), max: z.number().int() })),
  fact(
    'engine_finished',
    engineRunSchema.extend({
      iteration: z.number().int(),
      engine: z.string(),
      turn: turnSchema.nullable().default(null),
      usage: usageSchema.prefault(unknownUsage),
      nomination: nominationSchema.nullable().default(null),
    }),
  ),
  /** The same iteration once more, because the engine's process died or was not there; it costs no iteration. */
  fact(
    'invocation_retried',
    z.strictObject({
      hypothesis: z.number().int(),
      reason: z.string(),
      retries_remaining: z.number().int(),
      /** A lost process uses up a retry; an engine that was not there is counted as infrastructure. */
      retries_used: z.number().int(),
      infra_failures: z.number().int(),
    }),
  ),
  fact(
    'rate_limited',
    z.strictObject({
      reset_at: z.iso.datetime({ precision: 3 }),
      reason: z.string(),
      infra_failures: z.number().int(),
    }),
  ),
  /** The wait is over; the run's clock goes on with what was left of it. */
  fact('rate_limit_lifted', z.strictObject({ deadline_at: z.iso.datetime({ precision: 3 }).nullable() })),
  /** A lost run of the engine is about to be made again from its last checkpoint. */
  fact('checkpoint_resumed', z.strictObject({ step: stepSchema, count: z.number().int() })),
  fact('workspace_retained', z.strictObject({ checkpoint: checkpointSchema, reason: z.string() })),
  fact('checkpoint_created', checkpointSchema),
  fact(
    'contract_evaluated',
    z.strictObject({
      iteration: z.number().int(),
      on: z.enum(['worktree', 'clean_checkout']),
      results,
      green: z.boolean(),
      artifact: z.string(),
      tree_edited: z.boolean(),
    }),
  ),
  fact(
    'verdict_reached',
    z.strictObject({
      green: z.boolean(),
      failed: z.array(z.string()),
      not_run: z.array(z.string()),
      decided_by_layer: turnSchema.shape.decided_by_layer.default(0),
      reason: z.string().default(''),
      /** It is one of the Validate failures that the ceilings count; before this was told, every red was. */
      counted: z.boolean().optional(),
    }),
  ),
  fact(
    'diff_ready',
    z.strictObject({
      review: reviewIdentitySchema,
      stat: statSchema,
      patch_full_bytes: z.number().int(),
      body_artifact: z.string(),
      disclosed: z.array(disclosureKindSchema).default([]),
      checkpoint: checkpointSchema,
    }),
  ),
  /** A person let these checks through red; what is shown at review says so. */
  fact('red_accepted', z.strictObject({ checks: z.array(z.string()), by: z.string() })),
  fact(
    'review_restored',
    z.strictObject({ review_id: idSchema('rev'), tree: z.string(), proof: z.string() }),
  ),
  fact('finding_proposed', z.strictObject({ finding: findingSchema })),
  fact(
    'finding_resolved',
    z.strictObject({
      accepted: z.boolean(),
      comment: z.string().nullable(),
      verification: findingSchema.shape.verification.default('human_approved'),
    }),
  ),
  fact(
    'operator_guidance',
    z.strictObject({
      text: z.string(),
      status: z.enum(['accepted', 'applied']),
      by: z.string(),
    }),
  ),
  fact(
    'user_input_requested',
    z.strictObject({
      request_id: idSchema('req'),
      prompt: z.string(),
      deadline_at: z.iso.datetime({ precision: 3 }),
    }),
  ),
  fact(
    'user_input_answered',
    z.strictObject({ request_id: idSchema('req'), text: z.string(), by: z.string() }),
  ),
  /** The engine that asked is gone. */
  fact('user_input_withdrawn', z.strictObject({ request_id: idSchema('req'), reason: z.string() })),
  fact(
    'user_input_expired',
    z.strictObject({ request_id: idSchema('req'), prompt: z.string(), waited_secs: z.number() }),
  ),
  fact(
    'merge_completed',
    z.strictObject({
      ...{ branch: z.string(), commit: z.string(), delivery: z.string() },
      base_moved_to: z.string().exactOptional(),
    }),
  ),
  fact('delivery_failed', z.strictObject({ problem: z.string(), detail: z.string() })),
  fact(
    'infrastructure_fault',
    z.strictObject({
      step: stepSchema,
      cause: z.string(),
      detail: z.string(),
      count: z.number().int(),
    }),
  ),
  fact('session_failed', z.strictObject({ failure_kind: failureKindSchema, error: z.string() })),
  fact(
    'session_cancelled',
    z.strictObject({
      reason: z.string().nullable(),
      by: z.string(),
      /** Its unfinished work is kept, whatever was asked for at the start. */
      keep: z.boolean().exactOptional(),
    }),
  ),
  fact('execution_stopped', z.strictObject({ at_step: stepSchema })),
])

export type LifecycleFact = z.infer<typeof lifecycleFactSchema>
