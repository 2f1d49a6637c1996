import type { Document } from '../session/document.ts'
import { steps } from '../session/states.ts'
import type { Entry } from './entry.ts'
import { type RecordFact, recordFactSchema } from './facts.ts'

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

const created = (data: Extract<RecordFact, { type: 'session_created' }>['data'], time: string): Document => ({
  ...data,
  base: null,
  start_commit: null,
  engine_ran: null,
  state: 'created',
  step: 'Admit',
  stage: steps.Admit.stage,
  baseline: [],
  baseline_gates_nothing: false,
  baseline_artifact: null,
  captures: {},
  last_check_results: [],
  last_results_artifact: null,
  iterations: 0,
  round_started_at: 0,
  iteration_open: false,
  deadline_at: null,
  consecutive_failures: 0,
  infra_failures: 0,
  preflight_retries: 0,
  checkpoint_resumes: 0,
  checkpoint: null,
  gate: null,
  review_identity: null,
  review_stat: null,
  review_artifact: null,
  no_change_finding: null,
  result_branch: null,
  result_commit: null,
  result_delivery: null,
  delivery_problem: null,
  steering_messages: [],
  cost_usd: null,
  decided_by: null,
  failure_kind: null,
  error: null,
  execution_stopped: false,
  created_at: time,
  updated_at: time,
})

const noBaseline = { baseline: [], baseline_gates_nothing: false, baseline_artifact: null, captures: {} }

const applied = (
  doc: Document,
  fact: Exclude<RecordFact, { type: 'session_created' }>,
): Partial<Document> => {
  switch (fact.type) {
    case 'step_completed':
      return {
        step: fact.data.next,
        stage: fact.data.next === 'Settle' ? doc.stage : steps[fact.data.next].stage,
        // spec/workflow-state.md C.3: only a move on resets; a repeat of the same step and a loop back to Code don't.
        ...(fact.data.next === fact.data.step || fact.data.next === 'Code' ? {} : { infra_failures: 0 }),
      }
    case 'state_changed':
      return { state: fact.data.to }
    case 'workspace_prepared':
      return {
        base: doc.requested_base === null ? null : fact.data.base,
        start_commit: fact.data.start_commit,
        checkpoint: { id: 'base', commit: fact.data.start_commit, tree: fact.data.tree, bundle: null },
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
      return { gate: null, decided_by: fact.data.by }
    case 'run_started':
      return { deadline_at: fact.data.deadline_at, round_started_at: doc.iterations }
    case 'iteration_started':
      return { iterations: fact.data.n, iteration_open: true }
    case 'engine_finished':
      return { engine_ran: fact.data.engine }
    case 'checkpoint_created':
      return { checkpoint: fact.data }
    case 'contract_evaluated':
      return {
        last_check_results: fact.data.results,
        last_results_artifact: fact.data.artifact,
        iteration_open: false,
      }
    case 'verdict_reached':
      return {
        consecutive_failures: fact.data.green
          ? 0
          : Math.min(doc.consecutive_failures + 1, Number.MAX_SAFE_INTEGER),
      }
    case 'diff_ready':
      return {
        review_identity: fact.data.review,
        review_stat: fact.data.stat,
        review_artifact: fact.data.body_artifact,
        checkpoint: fact.data.checkpoint,
        delivery_problem: null,
      }
    case 'finding_proposed':
      return { no_change_finding: fact.data.finding }
    case 'finding_resolved':
      return {
        no_change_finding: doc.no_change_finding && {
          ...doc.no_change_finding,
          verification: fact.data.accepted ? 'human_approved' : doc.no_change_finding.verification,
          resolver_comment: fact.data.comment,
        },
      }
    case 'operator_guidance':
      return fact.data.status === 'accepted'
        ? { steering_messages: [...doc.steering_messages, fact.data.text] }
        : {}
    case 'merge_completed':
      return {
        result_branch: fact.data.branch,
        result_commit: fact.data.commit,
        result_delivery: fact.data.delivery,
        delivery_problem: null,
      }
    case 'delivery_failed':
      return { delivery_problem: fact.data.detail }
    case 'infrastructure_fault':
      return { infra_failures: fact.data.count }
    case 'session_failed':
      return { failure_kind: fact.data.failure_kind, error: fact.data.error, gate: null }
    case 'session_cancelled':
      return { gate: null, error: fact.data.reason }
    case 'execution_stopped':
      return { execution_stopped: true }
  }
}

/** Folds one record into the document. Pure and total: no clock, no tool, no network. */
export const foldRecord = (doc: Document | null, fact: RecordFact, time: string): Document => {
  if (fact.type === 'session_created') return created(fact.data, time)
  if (!doc) throw new ReplayError('invalid_creation', 0, 'a journal starts with session_created')
  return { ...doc, ...applied(doc, fact), updated_at: time }
}

/** Folds one entry; events are skipped, an unknown or invalid record stops the replay by its name. */
export const foldEntry = (doc: Document | null, entry: Entry): Document | null => {
  if (entry.kind === 'event') return doc
  const parsed = recordFactSchema.safeParse({ type: entry.type, data: entry.data })
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
