import { createHash } from 'node:crypto'
import type { Command, Result, ReviewBody } from '../../lib/session/protocol.ts'
import { aContract, aResult, sha } from '../support/sessions.ts'

export const pick = <Value>(from: readonly [Value, ...Value[]], dice: number): Value =>
  from[Math.abs(dice) % from.length] ?? from[0]

/** The tree on which each session starts; its work has another. */
const startTree = sha('b')
const treeOf = (dice: number) => sha(pick(['d', 'e', 'f'], dice))

const verdicts = ['passed', 'passed', 'passed', 'failed', 'failed', 'could_not_run', 'flaky'] as const
const results = ({ session }: Command, dice: number) =>
  (session.contract ?? aContract()).checks.map(({ name }, at) => {
    const verdict = pick(verdicts, dice >> at)
    const starved = verdict === 'could_not_run' && dice % 3 === 0
    return aResult({ name, verdict, ...(starved ? { deadline_clamped: true, reason: 'deadline' } : {}) })
  })
const green = ({ session }: Command) =>
  (session.contract ?? aContract()).checks.map(({ name }) => aResult({ name, verdict: 'passed' }))

/** What every bundle of these sessions holds. */
export const bundleBody = 'work'
const bundle_sha256 = createHash('sha256').update(bundleBody).digest('hex')

/** The artifact of every review. */
export const reviewBody = JSON.stringify({
  ...{ changed_paths: [], contract_overlap: [], overlap_disclosure: null, disclosures: [], patch: '' },
  ...{ patch_truncated: false, patch_full_bytes: 9, patch_artifact: 'patch' },
} satisfies ReviewBody)

/** Saved work: nothing beyond the base on the tree of the start, a bundle on any other. */
export const checkpoint = (tree: string) =>
  tree === startTree
    ? { id: 'base', commit: sha('a'), tree, bundle: null, bundle_sha256: null }
    : { id: tree.slice(0, 1), commit: sha('c'), tree, bundle: `${tree.slice(0, 1)}.bundle`, bundle_sha256 }

const statuses = [
  ...(['finished', 'finished', 'finished', 'failed', 'failed', 'unavailable', 'killed'] as const),
  ...(['timed_out', 'cancelled', 'over_budget'] as const),
] as const
const reports = ['success', 'failed', 'rate_limited', 'rate_limited', 'auth_required'] as const
const resets = [60_000, 5 * 3600_000, 6 * 24 * 3600_000, 30 * 24 * 3600_000, -1000] as const

type Code = Extract<Result, { outcome: 'Code' }>

const coded = ({ session }: Command, dice: number, now: number): Code => {
  const status = pick(statuses, dice)
  const changed = dice % 4 !== 0
  const before = session.checkpoint?.tree ?? startTree
  const reported = pick(reports, dice >> 3)
  const reset = dice % 7 === 0 ? null : new Date(now + pick(resets, dice >> 5)).toISOString()
  return {
    ...{ outcome: 'Code', status, duration_ms: 1, output_bytes: 0, artifact: null, survivors: 0 },
    exit_code: status === 'finished' ? 0 : status === 'cancelled' ? null : 1,
    signal: status === 'killed' ? 'SIGKILL' : null,
    ...{ changed, touched: changed || dice % 5 === 0 },
    checkpoint: checkpoint(changed ? treeOf(dice >> 2) : before),
    report:
      dice % 6 < 4
        ? null
        : { status: reported, reason: '', reset_at: reported === 'rate_limited' ? reset : null },
    nomination: dice % 9 === 0 ? { kind: 'premise_wrong', summary: 'it is right', evidence: 'read' } : null,
    usage: {
      ...{ input_tokens: 10, output_tokens: null },
      ...{ cost_usd: dice % 3 === 0 ? null : 0.4, complete: dice % 3 !== 0 },
    },
    guidance_applied: Math.max(0, session.steering_messages.length - (dice % 8 === 0 ? 1 : 0)),
  }
}

const reviewed = (command: Command): Extract<Result, { outcome: 'Verify' }>['review'] => {
  const { checkpoint: saved, nomination } = command.session
  const tree = saved?.tree ?? startTree
  const kind = tree === startTree ? 'finding' : 'change'
  return {
    ...{ kind, base: sha('a'), commit: kind === 'change' ? sha('e') : sha('a'), tree },
    ...{ stat: { files: 1, insertions: 1, deletions: 0 }, patch_full_bytes: 9, body_artifact: 'review' },
    finding:
      kind === 'change'
        ? null
        : (nomination ?? { kind: 'already_satisfied', summary: 'green', evidence: 'checks' }),
    ...{ disclosed: [], checkpoint: checkpoint(tree) },
  }
}

/** What a command comes to when all goes well. */
export const goodResult = (command: Command): Result => {
  switch (command.step) {
    case 'Preflight':
      return { outcome: 'Preflight', problems: [] }
    case 'Prepare':
      return { outcome: 'Prepare', base: sha('a'), start_commit: sha('a'), tree: startTree, warnings: [] }
    case 'Draft':
      return {
        ...{ outcome: 'Draft', contract: command.session.contract ?? aContract() },
        provenance: command.session.contract ? 'operator_supplied' : 'model_derived',
        ...{ sources: [], warnings: [] },
      }
    case 'Baseline':
      return {
        ...{ outcome: 'Baseline', captures: {} },
        results: green(command).map((one) => aResult({ name: one.name, verdict: 'failed' })),
      }
    case 'Code':
      return {
        ...{ ...coded(command, 0, 0), status: 'finished', changed: true, touched: true },
        ...{ checkpoint: checkpoint(sha('d')), report: null, nomination: null },
      }
    case 'Validate':
      return { outcome: 'Validate', results: green(command), tree_edited: false }
    case 'Verify':
      return { outcome: 'Verify', results: green(command), tree_edited: false, review: reviewed(command) }
    case 'Deliver': {
      const commit = command.session.review_identity?.commit ?? sha('0')
      return { outcome: 'Deliver', delivered: { ok: true, branch: 'gatehouse/x', commit } }
    }
    default:
      throw new Error(`${command.step} is no step of a worker`)
  }
}

/** What a command comes to, for better or worse, as the dice have it. */
export const someResult = (command: Command, dice: number, now: number): Result => {
  if (dice % 23 === 0) return { outcome: 'failed', failure_kind: 'configuration', error: 'not possible' }
  if (dice % 19 === 0) return { outcome: 'fault', detail: 'lost the network' }
  const judges = command.step === 'Validate' || command.step === 'Verify'
  if (judges && dice % 17 === 0) return { outcome: 'setup_failed', detail: 'the registry is away' }
  switch (command.step) {
    case 'Preflight':
      return dice % 3 === 0
        ? { outcome: 'Preflight', problems: [{ failure_kind: 'auth_required', detail: 'no credential' }] }
        : goodResult(command)
    case 'Baseline':
      return { outcome: 'Baseline', results: results(command, dice), captures: {} }
    case 'Code':
      return coded(command, dice, now)
    case 'Validate':
      return { outcome: 'Validate', results: results(command, dice), tree_edited: dice % 11 === 0 }
    case 'Verify': {
      const found = dice % 2 === 0 ? green(command) : results(command, dice >> 1)
      const red = found.some(
        ({ verdict, name }) => verdict !== 'passed' && !command.session.accepted_red.includes(name),
      )
      const nominated = command.session.nomination !== null
      return {
        ...{ outcome: 'Verify', results: found, tree_edited: false },
        review: red && !nominated ? null : reviewed(command),
      }
    }
    case 'Deliver':
      return dice % 3 === 0
        ? { outcome: 'Deliver', delivered: { ok: false, problem: 'moved', detail: 'the branch moved' } }
        : goodResult(command)
    default:
      return goodResult(command)
  }
}
