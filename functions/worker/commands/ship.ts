import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { contractOverlap, overlapDisclosure } from '../../../lib/contract/overlap.ts'
import type { CheckResult } from '../../../lib/contract/schema.ts'
import { summarise } from '../../../lib/contract/summary.ts'
import { limits } from '../../../lib/limits.ts'
import type { Command, Result, ReviewBody } from '../../../lib/session/protocol.ts'
import { deliverBranch } from '../../../lib/workspace/delivery.ts'
import { branchName } from '../../../lib/workspace/delivery-check.ts'
import { readPatchHead } from '../../../lib/workspace/patch.ts'
import { removeTree } from '../../../lib/workspace/remove-tree.ts'
import type { Workspace } from '../../../lib/workspace/workspace.ts'
import { contractOf, evaluate, setUp } from '../evaluate.ts'
import { commandSuffix, outputFolder, repositoryOf, type WorkerSession, workspaceOf } from '../session.ts'
import { checkpointOf, evaluateWorktree, treeResults } from './validate.ts'

type Review = NonNullable<Extract<Result, { outcome: 'Verify' }>['review']>

/** The one commit that would be delivered; the same for the same work, so that a fresh worker makes it again. */
const squashed = (workspace: Workspace, command: Command): Promise<string> =>
  workspace.squash({
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
  const tree = join(session.folder, 'clean')
  await workspace.cleanCheckout(commit, tree)
  try {
    const failure = await setUp(session, command, tree, 'setup-clean')
    if (failure) return { failure }
    const { results } = await evaluate(session, command, { tree, what: 'verify', phase: 'gate' })
    return { results: [...results, ...(await treeResults(workspace, command, []))], tree_edited: false }
  } finally {
    await removeTree(tree)
  }
}

/** Uploads what a reviewer reads, and says what the review binds. */
const prepareReview = async (
  session: WorkerSession,
  command: Command,
  workspace: Workspace,
  commit: string,
): Promise<Review> => {
  const checkpoint = checkpointOf(command)
  const unchanged = checkpoint.tree === workspace.baseTree
  const suffix = commandSuffix(command)
  const patchName = `review-${suffix}.patch`
  const bodyName = `review-${suffix}.json`
  const patchFile = join(outputFolder(session), patchName)
  const bodyFile = join(outputFolder(session), bodyName)
  const [{ paths, stat }] = await Promise.all([
    workspace.changedPaths(commit),
    workspace.writePatch(commit, patchFile),
  ])
  const { patch, truncated, full_bytes } = await readPatchHead(patchFile, limits.approvalPatch)
  const touched = paths.flatMap(({ path, old_path }) => (old_path === null ? [path] : [path, old_path]))
  const overlap = contractOverlap(contractOf(command), touched)
  const body: ReviewBody = {
    changed_paths: paths,
    contract_overlap: overlap,
    overlap_disclosure: overlapDisclosure(overlap),
    patch,
    patch_truncated: truncated,
    patch_full_bytes: full_bytes,
    patch_artifact: patchName,
  }
  await writeFile(bodyFile, JSON.stringify(body))
  await session.client.upload([
    { kind: 'artifact', name: patchName, file: patchFile },
    { kind: 'artifact', name: bodyName, file: bodyFile },
  ])
  return {
    kind: unchanged ? 'finding' : 'change',
    base: workspace.base,
    commit,
    tree: checkpoint.tree,
    stat,
    patch_full_bytes: full_bytes,
    body_artifact: bodyName,
    finding: unchanged
      ? {
          kind: 'already_satisfied',
          summary: 'Nothing was changed, and every check of the contract is green.',
          evidence: `The engine left the tree as it was at ${workspace.base}; the contract was evaluated on a clean checkout of it.`,
        }
      : null,
    checkpoint,
  }
}

/** Evaluates the contract on the very commit that would be delivered; red here is red (DESIGN 2, Verify). */
export const verify = async (session: WorkerSession, command: Command): Promise<Result> => {
  const workspace = await workspaceOf(session, command)
  const unchanged = checkpointOf(command).tree === workspace.baseTree
  const commit = unchanged ? workspace.base : await squashed(workspace, command)
  const evaluated: { failure: Result } | { results: CheckResult[]; tree_edited: boolean } =
    command.session.verify === 'clean'
      ? await evaluateClean(session, command, workspace, commit)
      : await evaluateWorktree(session, command, workspace)
  if ('failure' in evaluated) return evaluated.failure
  const review = summarise(evaluated.results).green
    ? await prepareReview(session, command, workspace, commit)
    : null
  return { outcome: 'Verify', ...evaluated, review }
}

/** Delivers exactly the reviewed commit, made again from the checkpoint and compared before anything is written. */
export const deliver = async (session: WorkerSession, command: Command): Promise<Result> => {
  const refuse = (problem: string, detail: string): Result => ({
    outcome: 'Deliver',
    delivered: { ok: false, problem, detail },
  })
  const identity = command.session.review_identity
  if (!identity) return refuse('review_moved', 'the session has no review')
  const workspace = await workspaceOf(session, command)
  const commit = await squashed(workspace, command)
  if (
    commit !== identity.commit ||
    checkpointOf(command).tree !== identity.tree ||
    workspace.base !== identity.base
  ) {
    return refuse('review_moved', `the work now makes commit ${commit}, the review showed ${identity.commit}`)
  }
  const delivered = await deliverBranch({
    repository: repositoryOf(command),
    gitDirectory: workspace.gitDirectory,
    base: workspace.base,
    commit,
    branch: branchName(command.session.id),
    signal: session.signal,
  })
  if (!delivered.ok) return refuse(delivered.problem, delivered.detail)
  return { outcome: 'Deliver', delivered: { ok: true, branch: delivered.branch, commit: delivered.commit } }
}
