import type { Captures } from '../contract/capture.ts'
import { contractHash } from '../contract/hash.ts'
import { type CheckResult, type Contract, contractSchema } from '../contract/schema.ts'
import { gatesNothing, summarise } from '../contract/summary.ts'
import { validateContract } from '../contract/validate.ts'
import { GatehouseError } from '../errors.ts'
import { type Actor, wellFormed } from '../journal/entry.ts'
import type { Fact } from '../journal/facts.ts'
import { advance, failTask } from './advance.ts'
import { openGate } from './gates.ts'
import type { Change, SessionItem } from './item.ts'
import type { Result } from './protocol.ts'
import { type FailureKind, isTerminal } from './states.ts'

/** The result without its output, as the session item keeps it; the output is in the artifact and the journal's events. */
export const withoutOutput = (result: CheckResult): CheckResult => ({
  ...result,
  output_head: '',
  output_tail: '',
})

const capturesWithoutOutput = (captures: Captures): Captures =>
  Object.fromEntries(
    Object.entries(captures).map(([name, capture]) => [
      name,
      { ...capture, result: withoutOutput(capture.result) },
    ]),
  )

/** The change that ends a session as failed, with its typed kind and a sentence for people. */
export const fail = (
  item: SessionItem,
  by: 'worker' | 'system',
  actor: Actor,
  failure: { failure_kind: FailureKind; error: string },
  facts: readonly Fact[] = [],
): Change =>
  advance(item, {
    trigger: 'failed',
    by,
    actor,
    note: `${failure.failure_kind}: ${failure.error}`,
    facts: [...facts, { type: 'session_failed', data: failure }],
  })

const list = (names: readonly string[]) => (names.length === 0 ? 'none' : names.join(', '))

const evaluated = (
  item: SessionItem,
  on: 'worktree' | 'clean_checkout',
  result: { results: CheckResult[]; tree_edited: boolean },
  artifact: string,
): { fact: Fact; green: boolean; note: string } => {
  const { green, failed, notRun } = summarise(result.results)
  const { iterations } = item.document
  return {
    green,
    note: `iteration ${iterations}: ${green ? 'green' : `red: ${list(failed)}${notRun.length > 0 ? `; not run: ${list(notRun)}` : ''}`}`,
    fact: {
      type: 'contract_evaluated',
      data: {
        iteration: iterations,
        on,
        results: result.results.map(withoutOutput),
        green,
        artifact,
        tree_edited: result.tree_edited,
      },
    },
  }
}

/** An evaluation speaks of every check of the contract, in order; one that leaves any out could be green by silence. */
const requireEveryCheck = (contract: Contract | null, results: readonly CheckResult[]): void => {
  const missing = contract?.checks.find((check, index) => results[index]?.name !== check.name)
  if (!contract || missing)
    throw new GatehouseError('invalid_request', `the results lack check ${missing?.name ?? ''}`)
}

/**
 * The change that a worker's result makes. `artifact` names the object that already holds the results with their
 * outputs. Pure but for fresh ids; throws `illegal_transition` or `already_decided` where the session has moved on.
 */
export const complete = (
  item: SessionItem,
  result: Result,
  how: { actor: Actor; events: readonly Fact[]; artifact: string; reviewId: string; now: number },
): Change => {
  const { document } = item
  const { actor, events, artifact, now } = how
  if (isTerminal(document.state)) throw new GatehouseError('superseded', `session ${document.id} has ended`)
  if ('results' in result) requireEveryCheck(document.contract, result.results)
  const step = (
    trigger: Parameters<typeof advance>[1]['trigger'],
    note: string,
    facts: readonly Fact[] = [],
    after: readonly Fact[] = [],
  ) => advance(item, { trigger, by: 'worker', actor, note, facts: [...events, ...facts], after })

  switch (result.outcome) {
    case 'fault':
      return {
        actor,
        facts: events,
        runtime: {
          task: null,
          command: null,
          last_command_id: item.runtime.command?.id ?? null,
          answers: [...item.runtime.answers, ...failTask(item, 'WorkerFault', result.detail)],
        },
      }
    case 'failed':
      return fail(item, 'worker', actor, { failure_kind: result.failure_kind, error: result.error }, events)
    case 'Preflight':
      return step('preflight_passed', 'repository and engine are ready')
    case 'Prepare':
      return step('prepared', `start commit ${result.start_commit.slice(0, 12)}`, [
        {
          type: 'workspace_prepared',
          data: { base: result.base, start_commit: result.start_commit, tree: result.tree },
        },
      ])
    case 'Draft': {
      const contract = contractSchema.parse(wellFormed(result.contract))
      const problems = validateContract(contract, { provenance: result.provenance })
      if (problems.length > 0) {
        const error = `no valid contract could be drafted: ${problems.map((problem) => problem.message).join('; ')}`
        return fail(item, 'worker', actor, { failure_kind: 'configuration', error }, events)
      }
      return step('contract_proposed', `checks: ${list(contract.checks.map((check) => check.name))}`, [
        {
          type: 'contract_proposed',
          data: {
            contract,
            contract_hash: contractHash(contract),
            provenance: result.provenance,
            sources: result.sources,
            warnings: result.warnings,
          },
        },
      ])
    }
    case 'Baseline': {
      const nothing = gatesNothing(result.results)
      const { failed } = summarise(result.results)
      const automatic = document.mode === 'auto' && !nothing
      return step(
        'baseline_measured',
        nothing ? 'every check already passes' : `red on the untouched tree: ${list(failed)}`,
        [
          {
            type: 'contract_baseline',
            data: {
              results: result.results.map(withoutOutput),
              gates_nothing: nothing,
              captures: capturesWithoutOutput(result.captures),
              artifact,
            },
          },
        ],
        automatic ? [] : [openGate('contract', now)],
      )
    }
    case 'Code': {
      const { outcome: _, checkpoint, ...run } = result
      return step(
        'engine_finished',
        `iteration ${document.iterations}: engine ${result.status}, exit ${result.exit_code ?? result.signal ?? 'unknown'}`,
        [
          {
            type: 'engine_finished',
            data: { iteration: document.iterations, engine: document.engine, ...run },
          },
          { type: 'checkpoint_created', data: checkpoint },
        ],
      )
    }
    case 'Validate': {
      const { fact, note } = evaluated(item, 'worktree', result, artifact)
      return step('contract_evaluated', note, [fact])
    }
    case 'Verify': {
      const { fact, green, note } = evaluated(item, 'clean_checkout', result, artifact)
      const { review } = result
      if (!green) return step('verify_red', `clean checkout, ${note}`, [fact])
      if (!review) throw new GatehouseError('invalid_request', 'green results come with their review')
      const identity = {
        review_id: how.reviewId,
        kind: review.kind,
        base: review.base,
        commit: review.commit,
        tree: review.tree,
        contract_hash: document.contract_hash ?? '',
      }
      const proposed: Fact[] = review.finding
        ? [
            {
              type: 'finding_proposed',
              data: {
                finding: {
                  ...review.finding,
                  verification: null,
                  proposed_at: new Date(now).toISOString(),
                  resolved_at: null,
                  resolver_comment: null,
                  baseline_checks: document.baseline,
                },
              },
            },
          ]
        : []
      return step(
        'verified',
        `${review.kind} ${review.commit.slice(0, 12)}: ${review.stat.files} files`,
        [
          fact,
          ...proposed,
          {
            type: 'diff_ready',
            data: {
              review: identity,
              stat: review.stat,
              patch_full_bytes: review.patch_full_bytes,
              body_artifact: review.body_artifact,
              checkpoint: review.checkpoint,
            },
          },
        ],
        [openGate('approval', now)],
      )
    }
    case 'Deliver': {
      const { delivered } = result
      if (delivered.ok) {
        return step('delivered', `branch ${delivered.branch}`, [
          {
            type: 'merge_completed',
            data: { branch: delivered.branch, commit: delivered.commit, delivery: 'branch' },
          },
        ])
      }
      return step(
        'delivery_failed',
        delivered.detail,
        [{ type: 'delivery_failed', data: { problem: delivered.problem, detail: delivered.detail } }],
        [openGate('approval', now)],
      )
    }
  }
}
