import type { Command, Result } from '../../../lib/session/protocol.ts'
import { type FileStamps, wereTouched } from '../../../lib/workspace/file-stamps.ts'
import type { Workspace } from '../../../lib/workspace/workspace.ts'
import { runEngine } from '../engine.ts'
import { bundleRecord } from '../kept-file.ts'
import { type WorkerSession, workspaceOf } from '../session.ts'

/** Saves the work in progress: a private commit, and a bundle of what the base lacks. */
const saveCheckpoint = async (
  session: WorkerSession,
  command: Command,
  workspace: Workspace,
  tree: string,
) => {
  const { commit, bundle } = await workspace.checkpoint(tree)
  const name = `${command.id}.bundle`
  if (bundle !== null) await session.client.upload([{ kind: 'bundle', name, file: bundle }])
  return { id: command.id, commit, tree, ...(await bundleRecord(name, bundle)) }
}

/**
 * The files as the engine left them. An engine that destroyed its worktree, or what lies beside it, has lost this
 * iteration's work and nothing else: the worktree is made anew from the last checkpoint, and the contract judges that.
 */
const captureWork = async (
  session: WorkerSession,
  command: Command,
  workspace: Workspace,
  before: FileStamps,
) => {
  try {
    const touched = wereTouched(before, await workspace.stamps())
    return { workspace, touched, ...(await workspace.capture()) }
  } catch (error) {
    if (session.signal.aborted) throw error
    session.reporter.event({
      type: 'error',
      data: { message: 'The engine destroyed its worktree; the work of this iteration is lost.' },
    })
    session.workspace = null
    session.setUp = false
    const anew = await workspaceOf(session, command)
    return { workspace: anew, touched: true, ...(await anew.capture()) }
  }
}

/** One engine iteration in the worktree: what its process, its tools and its files say, each for itself. */
export const code = async (session: WorkerSession, command: Command): Promise<Result> => {
  const workspace = await workspaceOf(session, command)
  await workspace.repairEngineRepository()
  const before = await workspace.stamps()
  const { run, reported, output } = await runEngine(session, command, workspace)
  const {
    workspace: kept,
    tree,
    touched,
    unrecorded,
  } = await captureWork(session, command, workspace, before)
  for (const { path, reason } of unrecorded) {
    session.reporter.event({
      type: 'error',
      data: { message: `${path} is not part of the work: ${reason.replaceAll('_', ' ')}` },
    })
  }
  const [checkpoint] = await Promise.all([
    saveCheckpoint(session, command, kept, tree),
    session.client.upload([{ kind: 'artifact', ...output }]),
  ])
  return {
    outcome: 'Code',
    status: run.status,
    exit_code: run.exit_code,
    signal: run.signal,
    duration_ms: run.duration_ms,
    output_bytes: run.output_bytes,
    artifact: output.name,
    survivors: run.survivors,
    changed: tree !== (command.session.checkpoint?.tree ?? kept.baseTree),
    touched,
    checkpoint,
    ...reported,
  }
}
