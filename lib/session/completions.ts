import { contractHash } from '../contract/hash.ts'
import { contractSchema } from '../contract/schema.ts'
import { gatesNothing, isReliable, suspicions, toldApart } from '../contract/summary.ts'
import { contractWarnings, validateContract } from '../contract/validate.ts'
import { GatehouseError } from '../errors.ts'
import { type Actor, wellFormed } from '../journal/entry.ts'
import type { Fact } from '../journal/facts.ts'
import { limits } from '../limits.ts'
import { firstOf } from '../text/shorten.ts'
import { advance, failTask } from './advance.ts'
import { capturesWithoutOutput, evaluated, listed, requireEveryCheck, withoutOutput } from './evaluation.ts'
import { budgetExhausted, fail } from './fail.ts'
import { openGate, reviewContext, sentences, withWarnings } from './gates.ts'
import { guidanceApplied } from './guidance.ts'
import type { Change, SessionItem } from './item.ts'
import { isInterrupted, judgeTurn } from './judge.ts'
import type { Trigger } from './lifecycle.ts'
import { isNominated, mayConclude, verificationOf } from './no-change.ts'
import { redResults } from './policy.ts'
import type { Result } from './protocol.ts'
import { setupFailed } from './recover.ts'
import { type FailureKind, isTerminal } from './states.ts'
import { sentAway } from './worker.ts'

type Of<Outcome extends Result['outcome']> = Extract<Result, { outcome: Outcome }>

/** What a completion is decided from, beside the result itself. */
type Completion = {
  item: SessionItem
  actor: Actor
  /** Events that happened before the end and come before its records. */
  events: readonly Fact[]
  /** The object that already holds the results with their outputs. */
  artifact: string
  /** The id of the review that a verification makes. */
  reviewId: string
  now: number
}

const step = (
  { item, actor, events }: Completion,
  trigger: Trigger,
  note: string,
  facts: readonly Fact[] = [],
  after: readonly Fact[] = [],
): Change => advance(item, { trigger, by: 'worker', actor, note, facts: [...events, ...facts], after })

const failed = (c: Completion, failure: Parameters<typeof fail>[3]): Change => {
  const { document } = c.item
  const budget =
    failure.failure_kind === 'budget_exhausted' ? [budgetExhausted(document, failure.error, c.now)] : []
  return fail(c.item, 'worker', c.actor, failure, [...c.events, ...budget])
}

const faulted = (
  { item, actor, events }: Completion,
  { outcome, detail }: Of<'fault' | 'setup_failed'>,
): Change => ({
  actor,
  facts: events,
  runtime: {
    task: null,
    command: null,
    last_command_id: item.runtime.command?.id ?? null,
    answers: [
      ...item.runtime.answers,
      ...failTask(item, outcome === 'fault' ? 'WorkerFault' : setupFailed, detail),
    ],
  },
})

/** The strongest kind among what is missing: a credential outranks all, and a mistake of the caller a fault of ours. */
const gravest = (problems: Of<'Preflight'>['problems']): FailureKind => {
  const kinds = new Set(problems.map(({ failure_kind }) => failure_kind))
  const order: FailureKind[] = ['auth_required', 'configuration']
  return order.find((kind) => kinds.has(kind)) ?? 'infrastructure'
}

/** Something is missing: a person is asked, until they have been asked too often (spec/workflow-state.md C.7). */
const preflighted = (c: Completion, { problems }: Of<'Preflight'>): Change => {
  if (problems.length === 0) return step(c, 'preflight_passed', 'repository and engine are ready')
  const { preflight_retries: retries } = c.item.document
  const error = firstOf(problems.map(({ detail }) => detail).join(' '), limits.reason)
  const told = (count: number): Fact => ({ type: 'preflight_failed', data: { problems, retries: count } })
  if (retries >= limits.preflightRetries)
    return failed({ ...c, events: [...c.events, told(retries)] }, { failure_kind: gravest(problems), error })
  const facts = [told(retries + 1)]
  const gate = openGate('preflight', c.now, { context: error, unexpected: true })
  return step(c, 'preflight_gated', error, facts, [gate])
}

const prepared = (c: Completion, { base, start_commit, tree, warnings }: Of<'Prepare'>): Change =>
  step(c, 'prepared', `start commit ${start_commit.slice(0, 12)}`, [
    { type: 'workspace_prepared', data: { base, start_commit, tree, warnings } },
  ])

const drafted = (c: Completion, { sources, warnings, ...result }: Of<'Draft'>): Change => {
  // Where a contract that was given came from is the session's to say.
  const provenance = c.item.document.contract_provenance ?? result.provenance
  const contract = contractSchema.parse(wellFormed(result.contract))
  const problems = validateContract(contract, { provenance })
  if (problems.length > 0) {
    const error = `no valid contract could be drafted: ${problems.map(({ message }) => message).join('; ')}`
    return failed(c, { failure_kind: 'configuration', error })
  }
  const data = { contract, contract_hash: contractHash(contract), provenance, sources, warnings }
  return step(c, 'contract_proposed', `checks: ${listed(contract.checks.map(({ name }) => name))}`, [
    { type: 'contract_proposed', data },
  ])
}

/** What is odd about a baseline, for the label of its gate; null where every check has a verdict on the tree. */
const baselineProblem = ({ results, setup_problem }: Of<'Baseline'>): string | null => {
  if (setup_problem !== undefined) return 'the setup failed on the untouched tree'
  const odd = results.filter(({ verdict }) => verdict === 'could_not_run' || verdict === 'flaky')
  return odd.length === 0 ? null : `on the untouched tree ${toldApart(odd)}`
}

/** The gate that follows is left out only where mode auto may confirm by itself. */
const baselineMeasured = (c: Completion, result: Of<'Baseline'>): Change => {
  const { results, captures, setup_problem } = result
  const gates_nothing = gatesNothing(results)
  const automatic = c.item.document.mode === 'auto' && !gates_nothing && isReliable(results)
  const told = gates_nothing ? 'every check already passes' : `on the untouched tree ${toldApart(results)}`
  const note = setup_problem ?? told
  const { contract } = c.item.document
  const warned = withWarnings(
    sentences([note, ...(contract ? contractWarnings(contract) : [])]),
    c.item.document,
  )
  const context = sentences([warned, ...suspicions(results)])
  const data = {
    results: results.map(withoutOutput),
    gates_nothing,
    captures: capturesWithoutOutput(captures),
    artifact: c.artifact,
  }
  const gate = automatic ? [] : [openGate('contract', c.now, { context, problem: baselineProblem(result) })]
  return step(c, 'baseline_measured', note, [{ type: 'contract_baseline', data }], gate)
}

const setAside: Fact = {
  type: 'error',
  data: {
    message:
      'The engine’s conclusion that nothing should change is set aside: files were written to, and taking that back does not undo it.',
  },
}

/** The turn is judged and its work saved; whatever it came to, the contract is evaluated next. */
const engineFinished = (c: Completion, result: Of<'Code'>): Change => {
  const { outcome: _, checkpoint, report: __, guidance_applied, ...run } = result
  const { document } = c.item
  const { iterations: iteration, engine } = document
  const turn = judgeTurn(iteration, result)
  const aside = result.nomination !== null && (document.mutated || run.changed || run.touched)
  const note = `iteration ${iteration}: ${turn.status}, ${turn.reason}`
  const change = step(c, isInterrupted(turn) ? 'engine_interrupted' : 'engine_finished', note, [
    { type: 'engine_finished', data: { iteration, engine, turn, ...run } },
    ...(aside ? [setAside] : []),
    ...guidanceApplied(document, guidance_applied, c.actor),
    { type: 'checkpoint_created', data: checkpoint },
  ])
  // The engine could read its worker's memory: whoever judges the work has a token that did not exist while it ran.
  return { ...change, runtime: { ...change.runtime, ...sentAway(c.item) } }
}

const validated = (c: Completion, result: Of<'Validate'>): Change => {
  const { fact, note } = evaluated(c.item.document, 'worktree', result, c.artifact)
  return step(c, 'contract_evaluated', note, [fact])
}

type Review = NonNullable<Of<'Verify'>['review']>

const proposedFinding = (c: Completion, finding: NonNullable<Review['finding']>, green: boolean): Fact => ({
  type: 'finding_proposed',
  data: {
    finding: {
      ...finding,
      verification: verificationOf(c.item.document, finding.kind, green),
      proposed_at: new Date(c.now).toISOString(),
      resolved_at: null,
      resolver_comment: null,
      baseline_checks: c.item.document.baseline,
    },
  },
})

const identityOf = (c: Completion, { kind, base, commit, tree }: Review) => {
  const contract_hash = c.item.document.contract_hash ?? ''
  return { review_id: c.reviewId, kind, base, commit, tree, contract_hash }
}

const diffReady = (c: Completion, review: Review): Fact => {
  const { stat, patch_full_bytes, body_artifact, disclosed, checkpoint } = review
  const data = { review: identityOf(c, review), stat, patch_full_bytes, body_artifact, disclosed, checkpoint }
  return { type: 'diff_ready', data }
}

/** What has to hold for a review: all that is red was let through by a person, or the finding is one they may decide on. */
const mayBeReviewed = ({ document }: SessionItem, { results, review }: Of<'Verify'>): boolean =>
  redResults(results, document.accepted_red).length === 0 ||
  (review?.kind === 'finding' && isNominated(document))

const nothingToDeliver =
  'the contract is green with nothing changed, but files were written to on the way: that shows neither work nor that none is needed'

const verified = (c: Completion, result: Of<'Verify'>): Change => {
  const { document } = c.item
  const on = document.verify === 'clean' ? 'clean_checkout' : 'worktree'
  const { fact, green, note } = evaluated(document, on, result, c.artifact)
  if (!mayBeReviewed(c.item, result)) return step(c, 'verify_red', `${on.replace('_', ' ')}, ${note}`, [fact])
  const { review } = result
  if (!review || (review.kind === 'finding') !== (review.finding !== null))
    throw new GatehouseError(
      'invalid_request',
      'results that can be reviewed come with their review, and a finding with what it says',
    )
  if (review.kind === 'finding' && !mayConclude(document))
    return fail(c.item, 'worker', c.actor, { failure_kind: 'error', error: nothingToDeliver }, [
      ...c.events,
      fact,
    ])
  const finding = review.finding ? [proposedFinding(c, review.finding, green)] : []
  const red = redResults(result.results).map(({ name }) => name)
  const told = reviewContext({
    review_identity: identityOf(c, review),
    review_stat: review.stat,
    review_disclosed: review.disclosed,
    accepted_red: red,
    source_warnings: document.source_warnings,
  })
  const gate = openGate('approval', c.now, { context: told })
  return step(c, 'verified', told, [fact, ...finding, diffReady(c, review)], [gate])
}

/** A delivery that did not happen goes back to review: the reason is shown, and the same review can be approved again. */
const delivered = (c: Completion, { delivered: delivery }: Of<'Deliver'>): Change => {
  if (!delivery.ok) {
    const { problem, detail } = delivery
    const facts: Fact[] = [{ type: 'delivery_failed', data: { problem, detail } }]
    const gate = openGate('approval', c.now, { context: `The delivery failed: ${detail}`, unexpected: true })
    return step(c, 'delivery_failed', detail, facts, [gate])
  }
  const { ok: _, ...made } = delivery
  const { branch, base_moved_to: moved } = made
  const note = moved ? `; the base has moved to ${moved.slice(0, 12)} since the work began` : ''
  return step(c, 'delivered', `branch ${branch}${note}`, [
    { type: 'merge_completed', data: { ...made, delivery: 'branch' } },
  ])
}

const completion = (c: Completion, result: Result): Change => {
  switch (result.outcome) {
    case 'fault':
    case 'setup_failed':
      return faulted(c, result)
    case 'failed':
      return failed(c, { failure_kind: result.failure_kind, error: result.error })
    case 'Preflight':
      return preflighted(c, result)
    case 'Prepare':
      return prepared(c, result)
    case 'Draft':
      return drafted(c, result)
    case 'Baseline':
      return baselineMeasured(c, result)
    case 'Code':
      return engineFinished(c, result)
    case 'Validate':
      return validated(c, result)
    case 'Verify':
      return verified(c, result)
    case 'Deliver':
      return delivered(c, result)
  }
}

/**
 * The change that a worker's result makes. Pure but for fresh ids; throws `superseded` when the session has ended,
 * `illegal_transition` where it is at another step, and `invalid_request` for results that leave a check out.
 */
export const complete = (item: SessionItem, result: Result, how: Omit<Completion, 'item'>): Change => {
  const { id, state, contract } = item.document
  if (isTerminal(state)) throw new GatehouseError('superseded', `session ${id} has ended`)
  if ('results' in result) requireEveryCheck(contract, result.results)
  return completion({ item, ...how }, result)
}
