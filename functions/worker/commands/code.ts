import { excessTexts, isExcess } from '../../../lib/process/bounds/excess.ts'
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

/** A worktree made anew from the last checkpoint, which takes the place of the one at hand. */
const fromCheckpoint = async (session: WorkerSession, command: Command, message: string) => {
  // First of all the room that it takes, without which nothing else might be written.
  await session.place?.close()
  session.workspace = null
  session.setUp = false
  const anew = await workspaceOf(session, command)
  session.reporter.event({ type: 'error', data: { message } })
  return { workspace: anew, touched: true, ...(await anew.capture()) }
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
  excess: string | null,
) => {
  if (excess !== null) {
    const lost = `The engine was ended because ${excess}; the work of this iteration is lost.`
    return fromCheckpoint(session, command, lost)
  }
  try {
    const touched = wereTouched(before, await workspace.stamps())
    return { workspace, touched, ...(await workspace.capture()) }
  } catch (error) {
    if (session.signal.aborted) throw error
    const lost = 'The engine destroyed its worktree; the work of this iteration is lost.'
    return fromCheckpoint(session, command, lost)
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
  } = await captureWork(
    session,
    command,
    workspace,
    before,
    isExcess(run.status) ? excessTexts[run.status] : null,
  )
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
