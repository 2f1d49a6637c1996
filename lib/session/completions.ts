import { contractHash } from '../contract/hash.ts'
import { contractSchema } from '../contract/schema.ts'
import { gatesNothing, summarise } from '../contract/summary.ts'
import { validateContract } from '../contract/validate.ts'
import { GatehouseError } from '../errors.ts'
import { type Actor, wellFormed } from '../journal/entry.ts'
import type { Fact } from '../journal/facts.ts'
import { advance, failTask } from './advance.ts'
import { capturesWithoutOutput, evaluated, listed, requireEveryCheck, withoutOutput } from './evaluation.ts'
import { fail } from './fail.ts'
import { openGate } from './gates.ts'
import type { Change, SessionItem } from './item.ts'
import type { Trigger } from './lifecycle.ts'
import type { Result } from './protocol.ts'
import { isTerminal } from './states.ts'

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

const failed = (c: Completion, failure: Parameters<typeof fail>[3]): Change =>
  fail(c.item, 'worker', c.actor, failure, c.events)

const faulted = ({ item, actor, events }: Completion, { detail }: Of<'fault'>): Change => ({
  actor,
  facts: events,
  runtime: {
    task: null,
    command: null,
    last_command_id: item.runtime.command?.id ?? null,
    answers: [...item.runtime.answers, ...failTask(item, 'WorkerFault', detail)],
  },
})

const prepared = (c: Completion, { base, start_commit, tree }: Of<'Prepare'>): Change =>
  step(c, 'prepared', `start commit ${start_commit.slice(0, 12)}`, [
    { type: 'workspace_prepared', data: { base, start_commit, tree } },
  ])

const drafted = (c: Completion, { provenance, sources, warnings, ...result }: Of<'Draft'>): Change => {
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

/** The gate that follows is left out only where mode auto may confirm by itself. */
const baselineMeasured = (c: Completion, { results, captures }: Of<'Baseline'>): Change => {
  const gates_nothing = gatesNothing(results)
  const automatic = c.item.document.mode === 'auto' && !gates_nothing
  const note = gates_nothing
    ? 'every check already passes'
    : `red on the untouched tree: ${listed(summarise(results).failed)}`
  const data = {
    results: results.map(withoutOutput),
    gates_nothing,
    captures: capturesWithoutOutput(captures),
    artifact: c.artifact,
  }
  const gate = automatic ? [] : [openGate('contract', c.now)]
  return step(c, 'baseline_measured', note, [{ type: 'contract_baseline', data }], gate)
}

const engineFinished = (c: Completion, { outcome: _, checkpoint, ...run }: Of<'Code'>): Change => {
  const { iterations, engine } = c.item.document
  const exit = run.exit_code ?? run.signal ?? 'unknown'
  return step(c, 'engine_finished', `iteration ${iterations}: engine ${run.status}, exit ${exit}`, [
    { type: 'engine_finished', data: { iteration: iterations, engine, ...run } },
    { type: 'checkpoint_created', data: checkpoint },
  ])
}

const validated = (c: Completion, result: Of<'Validate'>): Change => {
  const { fact, note } = evaluated(c.item.document, 'worktree', result, c.artifact)
  return step(c, 'contract_evaluated', note, [fact])
}

type Review = NonNullable<Of<'Verify'>['review']>

const proposedFinding = (c: Completion, finding: NonNullable<Review['finding']>): Fact => ({
  type: 'finding_proposed',
  data: {
    finding: {
      ...finding,
      verification: null,
      proposed_at: new Date(c.now).toISOString(),
      resolved_at: null,
      resolver_comment: null,
      baseline_checks: c.item.document.baseline,
    },
  },
})

const diffReady = (c: Completion, review: Review): Fact => {
  const { kind, base, commit, tree, stat, patch_full_bytes, body_artifact, checkpoint } = review
  const contract_hash = c.item.document.contract_hash ?? ''
  const identity = { review_id: c.reviewId, kind, base, commit, tree, contract_hash }
  return { type: 'diff_ready', data: { review: identity, stat, patch_full_bytes, body_artifact, checkpoint } }
}

const verified = (c: Completion, result: Of<'Verify'>): Change => {
  const { document } = c.item
  const on = document.verify === 'clean' ? 'clean_checkout' : 'worktree'
  const { fact, green, note } = evaluated(document, on, result, c.artifact)
  if (!green) return step(c, 'verify_red', `${on.replace('_', ' ')}, ${note}`, [fact])
  const { review } = result
  if (!review) throw new GatehouseError('invalid_request', 'green results come with their review')
  const finding = review.finding ? [proposedFinding(c, review.finding)] : []
  const told = `${review.kind} ${review.commit.slice(0, 12)}: ${review.stat.files} files`
  return step(c, 'verified', told, [fact, ...finding, diffReady(c, review)], [openGate('approval', c.now)])
}

/** A delivery that did not happen goes back to review: the reason is shown, and the same review can be approved again. */
const delivered = (c: Completion, { delivered: delivery }: Of<'Deliver'>): Change => {
  if (!delivery.ok) {
    const { problem, detail } = delivery
    const facts: Fact[] = [{ type: 'delivery_failed', data: { problem, detail } }]
    return step(c, 'delivery_failed', detail, facts, [openGate('approval', c.now)])
  }
  const { branch, commit } = delivery
  return step(c, 'delivered', `branch ${branch}`, [
    { type: 'merge_completed', data: { branch, commit, delivery: 'branch' } },
  ])
}

const completion = (c: Completion, result: Result): Change => {
  switch (result.outcome) {
    case 'fault':
      return faulted(c, result)
    case 'failed':
      return failed(c, { failure_kind: result.failure_kind, error: result.error })
    case 'Preflight':
      return step(c, 'preflight_passed', 'repository and engine are ready')
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
