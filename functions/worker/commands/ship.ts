import { hash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { nameOfContent } from '../../../lib/artifact-name.ts'
import type { CheckResult } from '../../../lib/contract/schema.ts'
import { sha256Of } from '../../../lib/kept-file.ts'
import { limits } from '../../../lib/limits.ts'
import { redResults } from '../../../lib/session/policy.ts'
import type { Command, Result, ReviewBody } from '../../../lib/session/protocol.ts'
import { oneLine } from '../../../lib/text/visible.ts'
import { resolveBase } from '../../../lib/workspace/base.ts'
import { deliverBranch } from '../../../lib/workspace/delivery.ts'
import { branchName } from '../../../lib/workspace/delivery-check.ts'
import { readPatchHead } from '../../../lib/workspace/patch.ts'
import type { Trusted } from '../../../lib/workspace/trusted.ts'
import type { Workspace } from '../../../lib/workspace/workspace.ts'
import { disclose } from '../disclose.ts'
import { contractOf, evaluate, setUp, setupFault } from '../evaluate.ts'
import {
  commandSuffix,
  mirrorOf,
  outputFolder,
  repositoryOf,
  trustedOf,
  type WorkerSession,
  workspaceOf,
} from '../session.ts'
import { checkpointOf, evaluateWorktree, treeResults } from './validate.ts'

type Review = NonNullable<Extract<Result, { outcome: 'Verify' }>['review']>

/** The one commit that would be delivered; the same for the same work, so that a fresh worker makes it again. */
const squashed = (trusted: Trusted, command: Command): Promise<string> =>
  trusted.squash({
    tree: checkpointOf(command).tree,
    intent: command.session.intent,
    sessionId: command.session.id,
    date: new Date(command.session.created_at),
  })

const evaluateClean = async (
  session: WorkerSession,
  command: Command,
  workspace: Workspace,
  commit: string,
) => {
  const { place } = await session.places.open('clean', (tree) => workspace.cleanCheckout(commit, tree))
  try {
    const failed = await setUp(session, command, place, 'setup-clean')
    if (failed) {
      if ('ended' in failed) return { failure: failed.ended }
      return { failure: await setupFault(session, command, workspace, failed.failure) }
    }
    const { results } = await evaluate(session, command, { place, what: 'verify', phase: 'gate' })
    return { results: [...results, ...(await treeResults(workspace, command, []))], tree_edited: false }
  } finally {
    await place.close()
  }
}

type Finding = NonNullable<Review['finding']>

/** Whether the work is the base again, so that nothing would be delivered. */
const isUnchanged = (workspace: Workspace, command: Command): boolean =>
  checkpointOf(command).tree === workspace.baseTree

/** What the runtime itself saw: nothing was changed, and of the checks only those are red that a person let through. */
const observed = (workspace: Workspace, command: Command, red: readonly CheckResult[]): Finding => {
  const accepted = red.map(({ name }) => oneLine(name)).join(', ')
  const where = command.session.verify === 'clean' ? 'a clean checkout of it' : 'the worktree'
  return {
    kind: 'already_satisfied',
    summary:
      accepted === ''
        ? 'Nothing was changed, and every check of the contract is green.'
        : `Nothing was changed, and every check of the contract is green but for what a person let through: ${accepted}.`,
    evidence: `The engine left the tree as it was at ${workspace.base}; the contract was evaluated on ${where}.`,
  }
}

/** The conclusion that a person is asked about when nothing was changed: the engine's, else the runtime's own. */
const findingOf = (workspace: Workspace, command: Command, red: readonly CheckResult[]): Finding | null =>
  isUnchanged(workspace, command) ? (command.session.nomination ?? observed(workspace, command, red)) : null

/**
 * Whether a person is to see the work: all that is red was let through by one, or an engine that wrote to nothing holds that
 * nothing should change (spec/coder-session.md 7).
 */
const mayBeReviewed = (workspace: Workspace, command: Command, red: readonly CheckResult[]): boolean => {
  const { nomination, mutated } = command.session
  return red.length === 0 || (isUnchanged(workspace, command) && nomination !== null && !mutated)
}

/** Uploads what a reviewer reads, and says what the review binds. */
const prepareReview = async (
  session: WorkerSession,
  command: Command,
  workspace: Workspace,
  { commit, finding }: Pick<Review, 'commit' | 'finding'>,
): Promise<Review> => {
  const checkpoint = checkpointOf(command)
  const suffix = commandSuffix(command)
  const patchFile = join(outputFolder(session), `review-${suffix}.patch`)
  const bodyFile = join(outputFolder(session), `review-${suffix}.json`)
  const [{ paths, stat }] = await Promise.all([
    workspace.changedPaths(commit),
    workspace.writePatch(commit, patchFile),
  ])
  const { patch, truncated, full_bytes } = await readPatchHead(patchFile, limits.approvalPatch)
  const patchName = nameOfContent(`review-${suffix}`, await sha256Of(patchFile), 'patch')
  const disclosed = await disclose(workspace, contractOf(command), commit, paths)
  const body: ReviewBody = {
    changed_paths: paths,
    ...disclosed,
    patch,
    patch_truncated: truncated,
    patch_full_bytes: full_bytes,
    patch_artifact: patchName,
  }
  const text = JSON.stringify(body)
  const bodyName = nameOfContent(`review-${suffix}`, hash('sha256', text), 'json')
  await writeFile(bodyFile, text)
  await session.client.upload([
    { kind: 'artifact', name: patchName, file: patchFile },
    { kind: 'artifact', name: bodyName, file: bodyFile },
  ])
  return {
    kind: finding === null ? 'change' : 'finding',
    base: workspace.base,
    commit,
    tree: checkpoint.tree,
    stat,
    patch_full_bytes: full_bytes,
    body_artifact: bodyName,
    disclosed: disclosed.disclosures.map(({ kind }) => kind),
    finding,
    checkpoint,
  }
}

/** Evaluates the contract on the very commit that would be delivered; red here is red (DESIGN 2, Verify). */
export const verify = async (session: WorkerSession, command: Command): Promise<Result> => {
  const workspace = await workspaceOf(session, command)
  const commit = isUnchanged(workspace, command) ? workspace.base : await squashed(workspace, command)
  const evaluated: { failure: Result } | { results: CheckResult[]; tree_edited: boolean } =
    command.session.verify === 'clean'
      ? await evaluateClean(session, command, workspace, commit)
      : await evaluateWorktree(session, command, workspace)
  if ('failure' in evaluated) return evaluated.failure
  const red = redResults(evaluated.results, command.session.accepted_red)
  const finding = findingOf(workspace, command, redResults(evaluated.results))
  const review = mayBeReviewed(workspace, command, red)
    ? await prepareReview(session, command, workspace, { commit, finding })
    : null
  return { outcome: 'Verify', ...evaluated, review }
}

/** What the base names now, where that is another commit than the one worked on; null also where that can't be seen. */
const baseMovedTo = async (
  session: WorkerSession,
  command: Command,
  base: string,
): Promise<string | null> => {
  try {
    const mirror = await mirrorOf(session, command)
    if (typeof mirror !== 'string') return null
    const now = await resolveBase(mirror, command.session.requested_base, session.signal)
    return now.ok && now.commit !== base ? now.commit : null
  } catch (error) {
    if (session.signal.aborted) throw error
    // The branch is made: what is only told besides makes no fault of it.
    return null
  }
}

/** Delivers exactly the reviewed commit, made again from the checkpoint and compared before anything is written. */
export const deliver = async (session: WorkerSession, command: Command): Promise<Result> => {
  const refuse = (problem: string, detail: string): Result => ({
    outcome: 'Deliver',
    delivered: { ok: false, problem, detail },
  })
  const identity = command.session.review_identity
  if (!identity) return refuse('review_moved', 'the session has no review')
  const trusted = await trustedOf(session, command)
  const commit = await squashed(trusted, command)
  if (
    commit !== identity.commit ||
    checkpointOf(command).tree !== identity.tree ||
    trusted.base !== identity.base
  ) {
    return refuse('review_moved', `the work now makes commit ${commit}, the review showed ${identity.commit}`)
  }
  const delivered = await deliverBranch({
    repository: repositoryOf(command),
    gitDirectory: trusted.gitDirectory,
    base: trusted.base,
    commit,
    branch: branchName(command.session.id),
    signal: session.signal,
  })
  if (!delivered.ok) return refuse(delivered.problem, delivered.detail)
  const moved = await baseMovedTo(session, command, trusted.base)
  return {
    outcome: 'Deliver',
    delivered: {
      ...{ ok: true, branch: delivered.branch, commit: delivered.commit },
      ...(moved === null ? {} : { base_moved_to: moved }),
    },
  }
}
