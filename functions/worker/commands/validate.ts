import { embeddedResult, protectedChanges, protectResult } from '../../../lib/contract/protect.ts'
import type { CheckResult } from '../../../lib/contract/schema.ts'
import type { Command, Result } from '../../../lib/session/protocol.ts'
import type { Workspace } from '../../../lib/workspace/workspace.ts'
import { contractOf, evaluate, setUp, setupFault } from '../evaluate.ts'
import { WorkerFault, type WorkerSession, workspaceOf } from '../session.ts'
import { worktreePlace } from '../surroundings.ts'

/** The saved work that is judged. */
export const checkpointOf = (command: Command) => {
  const { checkpoint } = command.session
  if (!checkpoint) throw new WorkerFault('the session has no checkpoint')
  return checkpoint
}

/** What the tree itself has to hold true beside the contract's checks: protected paths untouched, nothing undeliverable. */
export const treeResults = async (
  workspace: Workspace,
  command: Command,
  embedded: readonly string[],
): Promise<CheckResult[]> => {
  const { protect } = contractOf(command)
  const results: CheckResult[] = []
  if (protect.length > 0) {
    const { paths } = await workspace.changedPaths(checkpointOf(command).commit)
    const touched = paths.flatMap(({ path, old_path }) => (old_path === null ? [path] : [path, old_path]))
    results.push(protectResult(protectedChanges(protect, touched)))
  }
  const undeliverable = embeddedResult(embedded)
  return undeliverable ? [...results, undeliverable] : results
}

/** Evaluates the contract on the worktree, and puts back what the checks themselves changed in it. */
export const evaluateWorktree = async (session: WorkerSession, command: Command, workspace: Workspace) => {
  const { tree } = checkpointOf(command)
  const place = await worktreePlace(session)
  if (!session.setUp) {
    const failed = await setUp(session, command, place, 'setup-worktree')
    if (failed) {
      if ('ended' in failed) return { failure: failed.ended }
      return { failure: await setupFault(session, command, workspace, failed.failure) }
    }
    session.setUp = true
  }
  const { results } = await evaluate(session, command, {
    place,
    what: 'validate',
    phase: 'gate',
  })
  const after = await workspace.capture()
  const tree_edited = after.tree !== tree
  if (tree_edited) await workspace.reset(tree)
  return { results: [...results, ...(await treeResults(workspace, command, after.embedded))], tree_edited }
}

export const validate = async (session: WorkerSession, command: Command): Promise<Result> => {
  const workspace = await workspaceOf(session, command)
  const evaluated = await evaluateWorktree(session, command, workspace)
  return 'failure' in evaluated ? evaluated.failure : { outcome: 'Validate', ...evaluated }
}
