import { isDeepStrictEqual } from 'node:util'
import { type Entry, fromLines } from '../../lib/journal/entry.ts'
import { type RecordFact, recordFactSchema } from '../../lib/journal/facts.ts'
import type { Document } from '../../lib/session/document.ts'
import type { SessionItem } from '../../lib/session/item.ts'

/**
 * What must be true of every write, said a second time and from the specifications alone (spec/coder-session.md 3,
 * spec/workflow-state.md C.3, DESIGN 3). Nothing here may come from the lifecycle table or the policy.
 */

const stateMoves: Record<string, readonly string[]> = {
  created: ['contract_proposed', 'failed', 'abandoned'],
  contract_proposed: ['contract_confirmed', 'failed', 'abandoned'],
  contract_confirmed: ['running', 'failed', 'abandoned'],
  running: ['needs_approval', 'failed', 'abandoned'],
  needs_approval: ['running', 'merged', 'reported', 'failed', 'abandoned'],
}
const terminal = ['merged', 'reported', 'failed', 'abandoned']
export const hasEnded = ({ state }: Pick<Document, 'state'>) => terminal.includes(state)

const stages = ['define', 'plan', 'code', 'validate', 'ship'] as const
const stageOf: Record<string, number> = {
  ...{ Admit: 0, Preflight: 0, PreflightGate: 0, Prepare: 0, Draft: 0, Baseline: 0, Confirm: 0 },
  ...{ Plan: 1, Code: 2, RateLimit: 2, Validate: 3, Decide: 3, ValidateGate: 3, Verify: 3 },
  ...{ Review: 4, Deliver: 4 },
}
const stageMoves = ['0-1', '1-2', '2-3', '3-2', '3-4', '4-2']

/** Turns that say nothing of the work: looking at what they left is no transition of C.3. */
const interruptions = [
  ...['rate_limited', 'auth_required', 'resource_killed', 'agent_unavailable', 'timed_out', 'over_budget'],
]
const gateOf: Record<string, string> = {
  ...{ Confirm: 'contract', Review: 'approval', PreflightGate: 'preflight', ValidateGate: 'validate' },
}

type Known = {
  item: SessionItem
  stage: number
  counters: { consecutive: number; infra: number; preflight: number; resumes: number; total: number }
  iterations: number
  turn: string | null
  gate: string | null
  decided: Set<string>
  review: { id: string; commit: string } | null
  approved: string | null
  deliveries: number
  evaluation: { verdict: string }[]
}

class Violation extends Error {}
const require = (holds: boolean, told: string): void => {
  if (!holds) throw new Violation(told)
}

const blank = (item: SessionItem): Known => ({
  ...{ item, stage: 0, iterations: 0, turn: null, gate: null, decided: new Set<string>() },
  counters: { consecutive: 0, infra: 0, preflight: 0, resumes: 0, total: 0 },
  ...{ review: null, approved: null, deliveries: 0, evaluation: [] },
})

const stepEnded = (known: Known, { step, next }: { step: string; next: string }): void => {
  const { counters, stage: from } = known
  const to = stageOf[next] ?? from
  const looks =
    step === 'Code' &&
    (next === 'ValidateGate' || (known.turn !== null && interruptions.includes(known.turn)))
  require(from === to || stageMoves.includes(`${from}-${to}`), `stage ${from} to ${to} by ${step}`)
  if (to > from && !looks) {
    counters.infra = 0
    if (!(from === 2 && to === 3)) counters.consecutive = 0
  }
  if (next === 'Prepare' && step !== 'Prepare') counters.preflight = 0
  if (next !== step) counters.resumes = 0
  known.stage = to
}

/** What one record does to what is known; each line is one rule. */
const heed = (known: Known, fact: RecordFact): void => {
  const { counters } = known
  switch (fact.type) {
    case 'step_completed':
      stepEnded(known, fact.data)
      return
    case 'engine_finished':
      known.turn = fact.data.turn?.status ?? null
      return
    case 'contract_evaluated':
      known.evaluation = fact.data.results
      return
    case 'verdict_reached': {
      const judged = known.evaluation.some(({ verdict }) => verdict === 'failed' || verdict === 'flaky')
      require(!fact.data.counted || judged, 'a failure was counted that no check judged')
      if (fact.data.counted) counters.consecutive += 1
      if (fact.data.counted) counters.total += 1
      return
    }
    case 'infrastructure_fault':
    case 'rate_limited':
      counters.infra += 1
      return
    case 'invocation_retried':
      // An engine that used up its own time is no fault of the infrastructure.
      if (known.turn !== 'timed_out') counters.infra += 1
      return
    case 'preflight_failed':
      counters.preflight += 1
      return
    case 'checkpoint_resumed':
      counters.resumes += 1
      return
    case 'iteration_started':
      known.iterations += 1
      require(fact.data.n === known.iterations, `iteration ${fact.data.n} follows ${known.iterations - 1}`)
      return
    case 'run_stopped':
      // What an interrupted engine left was only looked at: the stage that is left is the one before.
      known.stage = stages.indexOf(fact.data.stage)
      return
    case 'gate_opened':
      require(known.gate === null, 'a gate opened while another was open')
      require(!known.decided.has(fact.data.id), 'a gate opened again')
      known.gate = fact.data.id
      return
    case 'gate_resolved':
      require(known.gate === fact.data.gate_id, 'a gate was decided that was not open')
      known.gate = null
      known.decided.add(fact.data.gate_id)
      if (fact.data.action === 'approve') known.approved = known.review?.id ?? null
      return
    case 'diff_ready':
      known.review = { id: fact.data.review.review_id, commit: fact.data.review.commit }
      known.approved = null
      return
    case 'delivery_failed':
      known.approved = null
      return
    case 'merge_completed':
      known.deliveries += 1
      require(known.deliveries === 1, 'delivered twice')
      require(known.review !== null && known.approved === known.review.id, 'delivered what was not approved')
      require(fact.data.commit === known.review?.commit, 'delivered another commit than was approved')
      return
  }
}

const heedEntry = (known: Known, entry: Entry, before: SessionItem | null): void => {
  if (entry.actor.kind === 'worker' && entry.type !== 'lease_taken' && before)
    require(entry.actor.id ===
      before.runtime.lease.worker_id, `${entry.type} by worker ${entry.actor.id}, which holds no lease`)
  if (entry.kind === 'record') heed(known, recordFactSchema.parse({ type: entry.type, data: entry.data }))
}

const countersOf = (doc: Document): Known['counters'] => ({
  ...{ consecutive: doc.consecutive_failures, infra: doc.infra_failures, preflight: doc.preflight_retries },
  ...{ resumes: doc.checkpoint_resumes, total: doc.total_failures },
})

/** What may still change of a session that has ended: what is known of its work and of its end. */
const lasting = (doc: Document) => ({
  ...doc,
  ...{ updated_at: '', execution_stopped: false, checkpoint: null, retained_work: false, step: '' },
  ...{ checkpoint_resumes: 0, infra_failures: 0, question: null },
})

const requireUntil = (doc: Document): void => {
  if (doc.until === null || hasEnded(doc)) return
  const last = stages.indexOf(doc.until)
  const at = stageOf[doc.step] ?? last
  // What an interrupted engine left is looked at, but never taken further.
  const looks = last === 2 && ['Validate', 'Decide', 'ValidateGate'].includes(doc.step)
  require(at <= last || looks, `at ${doc.step}, behind until ${doc.until}`)
  if (doc.step === 'Rest') require(doc.stopped && doc.stage === doc.until, 'rests elsewhere than until says')
}

const requireDocument = (known: Known, doc: Document): void => {
  const { counters } = known
  require(isDeepStrictEqual(
    countersOf(doc),
    counters,
  ), `counters ${JSON.stringify(countersOf(doc))}, should be ${JSON.stringify(counters)}`)
  require(doc.iterations === known.iterations && doc.iterations <= doc.max_iterations, 'too many iterations')
  require(counters.infra < 5 || hasEnded(doc), 'five faults and it goes on')
  require(counters.preflight <= 3 && counters.resumes <= 3, 'preflight or resumes beyond their ceiling')
  require((doc.gate?.id ?? null) ===
    known.gate, 'a gate was closed without a decision, or opened without a record')
  if (doc.gate) require(gateOf[doc.step] === doc.gate.kind, `gate ${doc.gate.kind} at ${doc.step}`)
  else if (doc.step in gateOf)
    require(doc.step === 'Confirm' &&
      doc.mode === 'auto' &&
      !doc.baseline_gates_nothing, `no gate at ${doc.step}`)
  if (doc.question?.status === 'pending') require(doc.step === 'Code', 'a question waits behind its engine')
  require(!hasEnded(doc) || doc.gate === null, 'an ended session waits for somebody')
  require((doc.state === 'merged') === (known.deliveries === 1), 'merged and delivered disagree')
  if (doc.state === 'reported')
    require(known.approved === known.review?.id, 'reported, and nobody accepted it')
  require((doc.state === 'failed') === (doc.failure_kind !== null), 'failed without a kind')
  if (doc.step === 'Deliver')
    require(known.approved === known.review?.id && known.review !== null, 'delivers what was not approved')
  requireUntil(doc)
}

const requireCeilings = (known: Known, doc: Document, entries: readonly Entry[]): void => {
  const counted = entries.some(({ type, data }) => type === 'verdict_reached' && data.counted === true)
  const { consecutive, total } = known.counters
  if (counted && (consecutive >= 3 || total >= 10))
    require(['ValidateGate', 'Settle', 'Rest'].includes(doc.step), `red ${consecutive} times and goes on`)
}

const requireMove = (before: SessionItem, after: SessionItem): void => {
  const [from, to] = [before.document, after.document]
  require(after.revision === before.revision + 1, 'a write came between')
  require(from.state === to.state ||
    (stateMoves[from.state] ?? []).includes(to.state), `state ${from.state} to ${to.state}`)
  if (hasEnded(from)) require(isDeepStrictEqual(lasting(from), lasting(to)), 'an ended session changed')
  require(after.runtime.lease.epoch >= before.runtime.lease.epoch, 'an epoch came again')
}

/** Ids that sessions had at any time: what a late caller may still name. */
export const noPast = () => ({
  gates: new Set<string>(),
  reviews: new Set<string>(),
  hashes: new Set<string>(),
  questions: new Set<string>(),
})
export type Past = ReturnType<typeof noPast>

const remember = (past: Past, { gate, review_identity, contract_hash, question }: Document): void => {
  if (gate) past.gates.add(gate.id)
  if (review_identity) past.reviews.add(review_identity.review_id)
  if (contract_hash !== null) past.hashes.add(contract_hash)
  if (question) past.questions.add(question.request_id)
}

/** Follows every write of the sessions of one run. */
export const createReference = () => {
  const sessions = new Map<string, Known>()
  const past = noPast()
  const lines = new Map<string, string[]>()
  const resolutions: { id: string; by: string; action: string }[] = []
  const violations: Violation[] = []

  const follow = (item: SessionItem): void => {
    const known = sessions.get(item.id)
    const before = known?.item ?? null
    const now = known ?? blank(item)
    const last = before?.journal_head.sequence ?? -1
    const fresh = item.outbox.filter(({ sequence }) => sequence > last).map(({ line }) => line)
    const entries = fromLines(fresh.join('\n'))
    lines.set(item.id, [...(lines.get(item.id) ?? []), ...fresh])
    require(entries.length === item.journal_head.sequence - last, 'entries are missing from the outbox')
    if (before) requireMove(before, item)
    for (const entry of entries) {
      const { type, data } = entry
      if (type === 'gate_resolved')
        resolutions.push({ id: item.id, by: String(data.by), action: String(data.action) })
      heedEntry(now, entry, before)
    }
    now.item = item
    sessions.set(item.id, now)
    requireDocument(now, item.document)
    requireCeilings(now, item.document, entries)
  }

  return {
    /** Is told of every write that was made, in the order in which they were. */
    written: (item: SessionItem): void => {
      remember(past, item.document)
      try {
        follow(item)
      } catch (error) {
        if (!(error instanceof Violation)) throw error
        violations.push(new Violation(`session ${item.id}, revision ${item.revision}: ${error.message}`))
      }
    },
    violate: (told: string): void => {
      violations.push(new Violation(told))
    },
    violations,
    past,
    /** How gates were decided, and by whom. */
    resolutions,
    /** Every line that a session's journal has to hold. */
    linesOf: (id: string): string[] => lines.get(id) ?? [],
    items: (): SessionItem[] => [...sessions.values()].map(({ item }) => item),
    item: (id: string): SessionItem | null => sessions.get(id)?.item ?? null,
    approved: (id: string): string | null => sessions.get(id)?.approved ?? null,
  }
}
