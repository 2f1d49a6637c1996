import { z } from 'zod'
import { capturesSchema } from '../contract/capture.ts'
import { checkResultSchema, contractSchema, provenanceSchema } from '../contract/schema.ts'
import { idSchema } from '../ids.ts'
import {
  checkpointSchema,
  documentSchema,
  engineRunSchema,
  findingSchema,
  gateSchema,
  reviewIdentitySchema,
  statSchema,
} from '../session/document.ts'
import { failureKindSchema, stateSchema, stepSchema } from '../session/states.ts'

const results = z.array(checkResultSchema)

const fact = <Type extends string, Data extends z.ZodType>(type: Type, data: Data) =>
  z.strictObject({ type: z.literal(type), data })

/** Facts that a replay needs. An unknown one stops a replay; its data is all that the fold may read. */
export const recordFactSchema = z.discriminatedUnion('type', [
  fact(
    'session_created',
    documentSchema.pick({
      id: true,
      team: true,
      repo: true,
      intent: true,
      requested_base: true,
      requested_engine: true,
      engine: true,
      engine_command: true,
      mode: true,
      verify: true,
      contract: true,
      contract_hash: true,
      contract_provenance: true,
      max_iterations: true,
      repair_invokes: true,
      transient_retries: true,
      max_wall_secs: true,
      delivery: true,
      labels: true,
      requested_by: true,
    }),
  ),
  /** A machine step ended; `next` is the step that follows. */
  fact('step_completed', z.strictObject({ step: stepSchema, trigger: z.string(), next: stepSchema })),
  fact('state_changed', z.strictObject({ from: stateSchema, to: stateSchema, trigger: z.string() })),
  fact(
    'workspace_prepared',
    z.strictObject({ base: z.string(), start_commit: z.string(), tree: z.string() }),
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
      action: z.enum(['confirm', 'revise', 'approve', 'reject', 'changes', 'cancel', 'expire']),
      by: z.string(),
      comment: z.string().nullable(),
    }),
  ),
  fact('run_started', z.strictObject({ deadline_at: z.iso.datetime({ precision: 3 }) })),
  fact('iteration_started', z.strictObject({ n: z.number().int(), max: z.number().int() })),
  fact('engine_finished', engineRunSchema.extend({ iteration: z.number().int(), engine: z.string() })),
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
    }),
  ),
  fact(
    'diff_ready',
    z.strictObject({
      review: reviewIdentitySchema,
      stat: statSchema,
      patch_full_bytes: z.number().int(),
      body_artifact: z.string(),
      checkpoint: checkpointSchema,
    }),
  ),
  fact('finding_proposed', z.strictObject({ finding: findingSchema })),
  fact('finding_resolved', z.strictObject({ accepted: z.boolean(), comment: z.string().nullable() })),
  fact(
    'operator_guidance',
    z.strictObject({
      text: z.string(),
      status: z.enum(['accepted', 'applied']),
      by: z.string(),
    }),
  ),
  fact('merge_completed', z.strictObject({ branch: z.string(), commit: z.string(), delivery: z.string() })),
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
  fact('session_cancelled', z.strictObject({ reason: z.string().nullable(), by: z.string() })),
  fact('execution_stopped', z.strictObject({ at_step: stepSchema })),
])

/** Facts for people to watch; a replay skips them, known or not. */
export const eventFactSchema = z.discriminatedUnion('type', [
  fact('engine_selected', z.strictObject({ engine: z.string(), reason: z.string() })),
  fact(
    'execution_started',
    z.strictObject({ name: z.string(), attempt: z.number().int(), at_step: stepSchema }),
  ),
  fact('worker_started', z.strictObject({ worker_id: z.string(), epoch: z.number().int() })),
  fact('setup_started', z.strictObject({ command: z.string() })),
  fact(
    'setup_completed',
    z.strictObject({
      command: z.string(),
      ok: z.boolean(),
      output_head: z.string(),
      output_tail: z.string(),
      artifact: z.string(),
    }),
  ),
  fact('check_started', z.strictObject({ name: z.string() })),
  fact('check_completed', z.strictObject({ result: checkResultSchema })),
  fact('engine_started', z.strictObject({ engine: z.string(), iteration: z.number().int() })),
  fact(
    'engine_output',
    z.strictObject({
      iteration: z.number().int(),
      text: z.string(),
      omitted_bytes: z.number().int(),
    }),
  ),
  fact('contract_revision_rejected', z.strictObject({ request: z.string(), reason: z.string() })),
  fact('compute_stopped', z.strictObject({ compute_id: z.string(), reason: z.string() })),
  fact('error', z.strictObject({ message: z.string() })),
])

export type RecordFact = z.infer<typeof recordFactSchema>
export type EventFact = z.infer<typeof eventFactSchema>
/** A fact before it has its place in a journal. */
export type Fact = RecordFact | EventFact

const recordTypes: ReadonlySet<string> = new Set(
  recordFactSchema.options.map((option) => option.shape.type.value),
)
export const isRecord = (fact: Fact): fact is RecordFact => recordTypes.has(fact.type)
