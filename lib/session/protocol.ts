import { z } from 'zod'
import { capturesSchema } from '../contract/capture.ts'
import { checkResultSchema, contractSchema, provenanceSchema } from '../contract/schema.ts'
import { disclosureKindSchema, disclosureSchema } from '../disclosure/kinds.ts'
import { engineStatusSchema } from '../engine/tools.ts'
import { idSchema } from '../ids.ts'
import { stampSchema } from '../journal/agent/envelope.ts'
import { branchSchema } from '../journal/agent/records.ts'
import { dataRefSchema } from '../journal/entry.ts'
import { eventFactSchema } from '../journal/event-facts.ts'
import { limits } from '../limits.ts'
import { agentViewSchema, transcriptSchema } from './agent-protocol.ts'
import {
  checkpointSchema,
  documentSchema,
  engineRunSchema,
  nominationSchema,
  questionSchema,
  statSchema,
  usageSchema,
} from './document.ts'
import { failureKindSchema, type StepOfKind, stepSchema } from './states.ts'

/** The worker protocol (API.md): every body carries the session's lease epoch; an older one is refused as superseded. */
const epoch = z.number().int().min(1)
const sha = z.string().regex(/^[0-9a-f]{40,64}$/)
const results = z.array(checkResultSchema).max(limits.checks + 2)

export const leaseRequestSchema = z.strictObject({
  /** A random name of this call: its repeat is answered as it was, and the call of another is refused. */
  claim: z.string().min(16).max(64),
})
export const leaseSchema = z.strictObject({
  session_id: z.string(),
  epoch,
  expires_at: z.string(),
  heartbeat_ms: z.number().int(),
})

/** Events that travel with a result; what they add to the session item until it is drained has to fit there. */
const events = z
  .array(eventFactSchema)
  .max(limits.journalBatch.entries)
  .refine((facts) => Buffer.byteLength(JSON.stringify(facts)) <= 2 * limits.journalBatch.bytes, {
    error: `have to be at most ${2 * limits.journalBatch.bytes} bytes of JSON`,
  })

const download = z.strictObject({ url: z.string() })

/** What a command says about the session; everything a worker needs and nothing it has to remember. */
export const commandSchema = z.strictObject({
  id: z.string(),
  step: stepSchema,
  session: documentSchema.pick({
    id: true,
    repo: true,
    intent: true,
    requested_base: true,
    start_commit: true,
    engine: true,
    engine_command: true,
    verify: true,
    contract: true,
    contract_hash: true,
    contract_provenance: true,
    iterations: true,
    max_iterations: true,
    deadline_at: true,
    checkpoint: true,
    steering_messages: true,
    created_at: true,
    start_tree: true,
    review_identity: true,
    delivery: true,
    accepted_red: true,
    same_output: true,
    nomination: true,
    mutated: true,
    keep_workspace_on_cancel: true,
    resumed_from: true,
  }),
  /** What the engine may still cost; null when there is no budget. */
  budget_left_usd: z.number().nullable(),
  allow_local_repositories: z.boolean(),
  /** The last evaluation with its outputs, for a repair. */
  failing: results,
  captures: capturesSchema,
  bundle: download.nullable(),
  review_id: z.string(),
})
export type Command = z.infer<typeof commandSchema>

/** The answer to GET /worker/v1/command: something to do, nothing yet, or the end. */
export const commandAnswerSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('command'), command: commandSchema }),
  z.strictObject({ kind: z.literal('wait') }),
  z.strictObject({ kind: z.literal('stop'), reason: z.string() }),
])
export type CommandAnswer = z.infer<typeof commandAnswerSchema>

/**
 * What the answer to the last batch gave, null before the first: with it the call's own write notes that everything up to
 * that batch is in the journal. Left out by a worker for which each batch is to be noted with a write of its own.
 */
const receipt = z.string().max(64).nullable().optional()

export const heartbeatRequestSchema = z.strictObject({ epoch, receipt })
export const heartbeatSchema = z.strictObject({ expires_at: z.string() })

const { causation_id, correlation_id, metadata } = stampSchema.shape

/**
 * A fact as a worker states it: an event, or a record of the agent. Its id and its time are given to it. Its data is here,
 * or in an artifact that the worker has uploaded as canonical JSON (RFC 8785); the journal refers to a copy of its own,
 * which nobody can write over.
 */
export const statedFactSchema = z
  .strictObject({
    type: z.string(),
    data: z.record(z.string(), z.unknown()).optional(),
    data_ref: dataRefSchema.optional(),
    /** Of a record; where nothing is said, the branch that is active then, or the one that it makes or activates. */
    branch: branchSchema.exactOptional(),
    ...{ causation_id, correlation_id, metadata },
  })
  .refine(({ data, data_ref }) => (data === undefined) !== (data_ref === undefined), {
    message: 'has to hold either data or data_ref',
  })
export type StatedFact = z.infer<typeof statedFactSchema>

export const entriesRequestSchema = z.strictObject({
  epoch,
  /** Names this batch; a repeat with the same name is answered as the first was. */
  batch_id: z.string().min(1).max(64),
  /** All of them become part of the journal in this order, or none does. */
  facts: z.array(statedFactSchema).min(1).max(limits.statedBatch),
  receipt,
})

/** The answer to GET /worker/v1/journal. A long transcript is at an address of its own. */
export const journalStateSchema = z.strictObject({
  ...agentViewSchema.shape,
  transcript: z.union([transcriptSchema, download]),
})

export const uploadsRequestSchema = z.strictObject({
  epoch,
  uploads: z
    .array(
      z.strictObject({
        kind: z.enum(['artifact', 'bundle']),
        name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/),
      }),
    )
    .min(1)
    .max(500),
})
export const uploadsSchema = z.strictObject({
  uploads: z.array(z.strictObject({ kind: z.string(), name: z.string(), url: z.string() })),
})

/** A review's bulk, which the worker uploads as one artifact: the rest of a Review is the session's own. */
export const reviewBodySchema = z.strictObject({
  changed_paths: z.array(
    z.strictObject({
      path: z.string(),
      old_path: z.string().nullable(),
      status: z.string(),
      binary: z.boolean(),
      insertions: z.number().int().nullable(),
      deletions: z.number().int().nullable(),
      old_mode: z.string(),
      new_mode: z.string(),
    }),
  ),
  contract_overlap: z.array(z.strictObject({ check: z.string(), paths: z.array(z.string()) })),
  overlap_disclosure: z.string().nullable(),
  /** What else a reviewer has to know; a review of before there were any has none. */
  disclosures: z.array(disclosureSchema).default([]),
  patch: z.string(),
  patch_truncated: z.boolean(),
  patch_full_bytes: z.number().int(),
  /** The artifact that holds the whole patch. */
  patch_artifact: z.string(),
})
export type ReviewBody = z.infer<typeof reviewBodySchema>

/** A question of the running engine; a repeat with the same id asks nothing anew. */
export const questionRequestSchema = z.strictObject({
  epoch,
  request_id: idSchema('req'),
  prompt: z.string().min(1).max(limits.question),
})
/** The answer to GET /worker/v1/question: what has become of the question that was asked. */
export const questionAnswerSchema = questionSchema.pick({ status: true, answer: true, deadline_at: true })
export type QuestionAnswer = z.infer<typeof questionAnswerSchema>

/** All guidance that the session has accepted, in order. */
export const guidanceSchema = z.strictObject({ messages: z.array(z.string()) })

/** Work that a worker saved on its way out, after its session had ended. */
export const retainRequestSchema = z.strictObject({ epoch, checkpoint: checkpointSchema })

const failed = z.strictObject({
  outcome: z.literal('failed'),
  failure_kind: failureKindSchema,
  error: z.string().max(limits.reason),
})

/** Something around the work failed that may go well the next time; the step is run again, up to a ceiling. */
const fault = z.strictObject({ outcome: z.literal('fault'), detail: z.string().max(limits.reason) })

/** The contract's setup failed in a tree of the work; it is tried again, and then a person is asked. */
const setupFailed = z.strictObject({
  outcome: z.literal('setup_failed'),
  detail: z.string().max(limits.reason),
})

const done = <Step extends StepOfKind<'worker'>, Shape extends z.ZodRawShape>(step: Step, shape: Shape) =>
  z.strictObject({ outcome: z.literal(step), ...shape })

/** How a command ended: by its step's own result, as a typed failure of the session, or by a fault around it. */
export const resultSchema = z.discriminatedUnion('outcome', [
  failed,
  fault,
  setupFailed,
  done('Preflight', {
    /** What is missing; none when the session can start. */
    problems: z
      .array(z.strictObject({ failure_kind: failureKindSchema, detail: z.string().max(limits.reason) }))
      .max(limits.namedPaths),
  }),
  done('Prepare', {
    base: sha,
    start_commit: sha,
    tree: sha,
    /** What a person has to know of the repository, such as work in it that no commit holds. */
    warnings: z.array(z.string().max(limits.reason)).max(8).default([]),
  }),
  done('Draft', {
    contract: contractSchema,
    provenance: provenanceSchema,
    sources: z.array(z.string()).max(32),
    warnings: z.array(z.string()).max(64),
  }),
  done('Baseline', {
    results,
    captures: capturesSchema,
    /** How the setup failed, so that no check was run; a person sees it at the contract gate. */
    setup_problem: z.string().max(limits.reason).exactOptional(),
  }),
  done('Code', {
    ...engineRunSchema.shape,
    checkpoint: checkpointSchema,
    /** What the engine reported of its own turn, through its tools. */
    report: z
      .strictObject({
        status: engineStatusSchema,
        reason: z.string().max(limits.reason),
        reset_at: z.iso.datetime({ precision: 3 }).nullable(),
      })
      .nullable(),
    nomination: nominationSchema.nullable(),
    usage: usageSchema,
    /** How many of the session's first steering messages the engine has been given by now. */
    guidance_applied: z.number().int().min(0),
  }),
  done('Validate', { results, tree_edited: z.boolean() }),
  done('Verify', {
    results,
    tree_edited: z.boolean(),
    /** Null when the results are red: then nothing would be delivered. */
    review: z
      .strictObject({
        kind: z.enum(['change', 'finding']),
        base: sha,
        commit: sha,
        tree: sha,
        stat: statSchema,
        patch_full_bytes: z.number().int(),
        body_artifact: z.string(),
        /** The kinds of what the body discloses. */
        disclosed: z.array(disclosureKindSchema).default([]),
        finding: nominationSchema.nullable(),
        checkpoint: checkpointSchema,
      })
      .nullable(),
  }),
  done('Deliver', {
    delivered: z.discriminatedUnion('ok', [
      z.strictObject({
        ...{ ok: z.literal(true), branch: z.string(), commit: sha },
        /** What the base names now, where that is another commit than the one that was worked on. */
        base_moved_to: sha.exactOptional(),
      }),
      z.strictObject({ ok: z.literal(false), problem: z.string(), detail: z.string().max(limits.reason) }),
    ]),
  }),
])
export type Result = z.infer<typeof resultSchema>

export const completeRequestSchema = z.strictObject({
  epoch,
  command_id: idSchema('cmd'),
  result: resultSchema,
  /** Events that happened before the end and were not sent yet. */
  facts: events.default([]),
  receipt,
})
export const completeSchema = z.strictObject({
  next: z.string(),
  /** The worker's part is over, and its token is good for nothing more: another one takes the next command. */
  leave: z.boolean(),
})
