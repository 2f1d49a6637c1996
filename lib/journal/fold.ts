import { sameOutput } from '../contract/environment/same-output.ts'
import type { Document, Usage } from '../session/document.ts'
import { newDocument } from '../session/new-document.ts'
import { keepsWork } from '../session/retained.ts'
import { stepEnd, withdrawn } from '../session/step-end.ts'
import { isAgentFactType } from './agent/records.ts'
import type { Entry } from './entry.ts'
import { type LifecycleFact, lifecycleFactSchema } from './lifecycle-facts.ts'

/** Thrown when a journal can't be replayed; `sequence` is the entry at which it stopped. */
export class ReplayError extends Error {
  readonly sequence: number
  readonly problem: 'unknown_record' | 'invalid_record' | 'invalid_creation' | 'sequence_mismatch' | 'empty'
  constructor(problem: ReplayError['problem'], sequence: number, message: string) {
    super(message)
    this.name = 'ReplayError'
    this.problem = problem
    this.sequence = sequence
  }
}

/** The sum of what is known; null while nothing is. */
const plus = (before: number | null, more: number | null): number | null =>
  before === null ? more : before + (more ?? 0)

const totalUsage = (before: Usage, more: Usage): Usage => ({
  input_tokens: plus(before.input_tokens, more.input_tokens),
  output_tokens: plus(before.output_tokens, more.output_tokens),
  cost_usd: plus(before.cost_usd, more.cost_usd),
  complete: before.complete && more.complete,
})

const saturated = (count: number): number => Math.min(count, Number.MAX_SAFE_INTEGER)

/** Whether there is work beyond the base to go on from. */
const hasWork = ({ checkpoint, start_tree }: Document): boolean =>
  checkpoint !== null && checkpoint.tree !== start_tree

const asked = (
  data: { request_id: string; prompt: string; deadline_at: string },
  time: string,
): NonNullable<Document['question']> => ({
  ...data,
  asked_at: time,
  status: 'pending',
  answer: null,
  answered_by: null,
})

/** A session that goes on or has ended is at rest no more. */
const underWay = { stopped: false, stop_reason: null, resume_at: null }

const noBaseline = { baseline: [], baseline_gates_nothing: false, baseline_artifact: null, captures: {} }

const applied = (
  doc: Document,
  fact: Exclude<LifecycleFact, { type: 'session_created' }>,
  time: string,
): Partial<Document> => {
  switch (fact.type) {
    case 'step_completed':
      return stepEnd(doc, fact.data)
    case 'state_changed':
      return { state: fact.data.to }
    case 'workspace_prepared':
      return {
        base: doc.requested_base === null ? null : fact.data.base,
        start_commit: fact.data.start_commit,
        start_tree: fact.data.tree,
        source_warnings: fact.data.warnings,
        checkpoint: doc.checkpoint ?? {
          id: 'base',
          commit: fact.data.start_commit,
          tree: fact.data.tree,
          bundle: null,
          bundle_sha256: null,
        },
      }
    case 'contract_proposed':
      return {
        contract: fact.data.contract,
        contract_hash: fact.data.contract_hash,
        contract_provenance: fact.data.provenance,
        ...noBaseline,
      }
    case 'contract_baseline':
      return {
        baseline: fact.data.results,
        baseline_gates_nothing: fact.data.gates_nothing,
        baseline_artifact: fact.data.artifact,
        captures: fact.data.captures,
      }
    case 'contract_confirmed':
      return {
        contract: fact.data.contract,
        contract_hash: fact.data.contract_hash,
        contract_provenance: fact.data.provenance,
        // A baseline speaks of the contract that was measured and of no other.
        ...(fact.data.contract_hash === doc.contract_hash ? {} : noBaseline),
      }
    case 'gate_opened':
      return { gate: fact.data }
    case 'gate_resolved':
      return {
        gate: null,
        ...(fact.data.action === 'expire' ? {} : { decided_by: fact.data.by }),
        // A person who answers at a review has taken it over: what was authorised before holds no more.
        ...(doc.gate?.kind === 'approval' && doc.yes_ship && !fact.data.automatic
          ? { yes_ship: { ...doc.yes_ship, void: true } }
          : {}),
      }
    case 'preflight_failed':
      return { preflight_retries: fact.data.retries }
    case 'run_stopped':
      return {
        stopped: true,
        stop_reason: fact.data.reason,
        stage: fact.data.stage,
        resume_at: fact.data.resume_at,
      }
    case 'run_resumed':
      return { ...underWay, until: fact.data.until }
    case 'run_started':
      return { deadline_at: fact.data.deadline_at, round_started_at: doc.iterations, retries_used: 0 }
    case 'iteration_started':
      return {
        iterations: fact.data.n,
        iteration_open: true,
        accepted_red: [],
        last_turn: null,
        nomination: null,
      }
    case 'engine_finished':
      return {
        engine_ran: fact.data.engine,
        last_turn: fact.data.turn,
        nomination: fact.data.nomination,
        mutated: doc.mutated || fact.data.changed || fact.data.touched,
        usage: totalUsage(doc.usage, fact.data.usage),
      }
    case 'invocation_retried':
      return {
        iteration_open: true,
        retries_used: fact.data.retries_used,
        infra_failures: fact.data.infra_failures,
      }
    case 'rate_limited':
      return {
        iteration_open: true,
        rate_limit: { reset_at: fact.data.reset_at, since: time },
        infra_failures: fact.data.infra_failures,
      }
    case 'rate_limit_lifted':
      return { rate_limit: null, deadline_at: fact.data.deadline_at }
    case 'checkpoint_resumed':
      return { checkpoint_resumes: fact.data.count }
    case 'workspace_retained':
      return {
        checkpoint: fact.data.checkpoint,
        retained_work: hasWork({ ...doc, checkpoint: fact.data.checkpoint }),
      }
    case 'checkpoint_created':
      return { checkpoint: fact.data }
    case 'contract_evaluated':
      return {
        last_check_results: fact.data.results,
        last_results_artifact: fact.data.artifact,
        same_output: sameOutput(
          doc.baseline,
          fact.data.results,
          doc.last_results_artifact === null ? null : doc.same_output,
        ),
        iteration_open: false,
      }
    case 'verdict_reached':
      return (fact.data.counted ?? !fact.data.green)
        ? {
            consecutive_failures: saturated(doc.consecutive_failures + 1),
            total_failures: saturated(doc.total_failures + 1),
          }
        : {}
    case 'red_accepted':
      return { accepted_red: fact.data.checks }
    case 'diff_ready':
      return {
        review_identity: fact.data.review,
        review_stat: fact.data.stat,
        review_artifact: fact.data.body_artifact,
        review_disclosed: fact.data.disclosed,
        checkpoint: fact.data.checkpoint,
        delivery_problem: null,
        review_restored: false,
      }
    case 'review_restored':
      return { review_restored: true }
    case 'finding_proposed':
      return { no_change_finding: fact.data.finding }
    case 'finding_resolved':
      return {
        no_change_finding: doc.no_change_finding && {
          ...doc.no_change_finding,
          ...(fact.data.accepted ? { verification: fact.data.verification } : {}),
          resolved_at: time,
          resolver_comment: fact.data.comment,
        },
      }
    case 'operator_guidance':
      return fact.data.status === 'accepted'
        ? { steering_messages: [...doc.steering_messages, fact.data.text] }
        : { guidance_applied: doc.guidance_applied + 1 }
    case 'user_input_requested':
      return { question: asked(fact.data, time) }
    case 'user_input_answered':
      return {
        question: doc.question && {
          ...doc.question,
          status: 'answered',
          answer: fact.data.text,
          answered_by: fact.data.by,
        },
      }
    case 'user_input_withdrawn':
      return { question: withdrawn(doc.question) }
    case 'user_input_expired':
      return { question: doc.question && { ...doc.question, status: 'expired' } }
    case 'merge_completed':
      return {
        result_branch: fact.data.branch,
        result_commit: fact.data.commit,
        result_delivery: fact.data.delivery,
        base_moved_to: fact.data.base_moved_to ?? null,
        delivery_problem: null,
      }
    case 'delivery_failed':
      return { delivery_problem: fact.data.detail }
    case 'infrastructure_fault':
      return { infra_failures: fact.data.count }
    case 'session_failed':
      return {
        failure_kind: fact.data.failure_kind,
        error: fact.data.error,
        gate: null,
        rate_limit: null,
        ...underWay,
        retained_work: hasWork(doc) && keepsWork(doc, fact.data.failure_kind),
      }
    case 'session_cancelled':
      return {
        gate: null,
        rate_limit: null,
        ...underWay,
        error: fact.data.reason,
        retained_work: hasWork(doc) && (fact.data.keep === true || keepsWork(doc, 'cancelled')),
      }
    case 'execution_stopped':
      return { execution_stopped: true }
  }
}

/** Folds one record into the document. Pure and total: no clock, no tool, no network. */
export const foldRecord = (doc: Document | null, fact: LifecycleFact, time: string): Document => {
  if (fact.type === 'session_created') return newDocument(fact.data, time)
  if (!doc) throw new ReplayError('invalid_creation', 0, 'a journal starts with session_created')
  return { ...doc, ...applied(doc, fact, time), updated_at: time }
}

/**
 * Folds one entry into the session's document: events are skipped, and so are the agent's records, which have a fold of
 * their own (agent/from-entry.ts). An unknown or invalid record stops the replay by its name.
 */
export const foldEntry = (doc: Document | null, entry: Entry): Document | null => {
  if (entry.kind === 'event' || isAgentFactType(entry.type)) return doc
  const parsed = lifecycleFactSchema.safeParse({ type: entry.type, data: entry.data })
  if (!parsed.success)
    throw new ReplayError('unknown_record', entry.sequence, `record ${entry.type} is not understood`)
  return foldRecord(doc, parsed.data, entry.time)
}

/** The document that a whole journal folds to. */
export const foldJournal = (entries: Iterable<Entry>): Document => {
  let doc: Document | null = null
  for (const entry of entries) doc = foldEntry(doc, entry)
  if (!doc) throw new ReplayError('empty', 0, 'the journal has no entries')
  return doc
}
