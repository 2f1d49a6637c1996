import { join } from 'node:path'
import { runCommandEngine } from '../../../lib/engine/command.ts'
import { buildPrompt } from '../../../lib/engine/prompt.ts'
import type { Command, Result } from '../../../lib/session/protocol.ts'
import type { Workspace } from '../../../lib/workspace/workspace.ts'
import { contractOf } from '../evaluate.ts'
import {
  commandSuffix,
  outputFolder,
  timeLeft,
  WorkerFault,
  type WorkerSession,
  workspaceOf,
} from '../session.ts'

/** Saves the work in progress: a private commit, and a bundle of what the base lacks. */
export const saveCheckpoint = async (
  session: WorkerSession,
  command: Command,
  workspace: Workspace,
  tree: string,
) => {
  const { commit, bundle } = await workspace.checkpoint(tree)
  const name = `${command.id}.bundle`
  if (bundle !== null) await session.client.upload([{ kind: 'bundle', name, file: bundle }])
  return { id: command.id, commit, tree, bundle: bundle === null ? null : name }
}

/**
 * The files as the engine left them. An engine that destroyed its worktree, or what lies beside it, has lost this
 * iteration's work and nothing else: the worktree is made anew from the last checkpoint, and the contract judges that.
 */
const captureWork = async (session: WorkerSession, command: Command, workspace: Workspace) => {
  try {
    return { workspace, ...(await workspace.capture()) }
  } catch (error) {
    if (session.signal.aborted) throw error
    session.reporter.event({
      type: 'error',
      data: { message: 'The engine destroyed its worktree; the work of this iteration is lost.' },
    })
    session.workspace = null
    session.setUp = false
    const anew = await workspaceOf(session, command)
    return { workspace: anew, ...(await anew.capture()) }
  }
}

/** One engine iteration in the worktree; what it claims is not read, only what it left in the files. */
export const code = async (session: WorkerSession, command: Command): Promise<Result> => {
  const { session: facts } = command
  if (facts.engine_command === null) throw new WorkerFault('the session names no engine command')
  const workspace = await workspaceOf(session, command)
  await workspace.repairEngineRepository()
  const iteration = facts.iterations
  const artifact = `engine-${iteration}-${commandSuffix(command)}.log`
  const outputFile = join(outputFolder(session), artifact)
  session.reporter.event({ type: 'engine_started', data: { engine: facts.engine, iteration } })
  const run = await runCommandEngine({
    command: facts.engine_command,
    tree: workspace.tree,
    prompt: buildPrompt({
      intent: facts.intent,
      steering: facts.steering_messages,
      contract: contractOf(command),
      iteration,
      failing: command.failing,
    }),
    promptFile: join(session.folder, 'prompt.txt'),
    sessionId: facts.id,
    iteration,
    env: session.env,
    timeoutMs: timeLeft(command, Date.now()),
    outputFile,
    marker: command.id,
    signal: session.signal,
    onOutput: (text) => session.reporter.engineOutput(iteration, text),
  })
  if (session.signal.aborted) throw new WorkerFault('stopped while the engine ran')
  const { workspace: kept, tree, unrecorded } = await captureWork(session, command, workspace)
  for (const { path, reason } of unrecorded) {
    session.reporter.event({
      type: 'error',
      data: { message: `${path} is not part of the work: ${reason.replaceAll('_', ' ')}` },
    })
  }
  const [checkpoint] = await Promise.all([
    saveCheckpoint(session, command, kept, tree),
    session.client.upload([{ kind: 'artifact', name: artifact, file: outputFile }]),
  ])
  return {
    outcome: 'Code',
    status: run.status,
    exit_code: run.exit_code,
    signal: run.signal,
    duration_ms: run.duration_ms,
    output_bytes: run.output_bytes,
    artifact,
    survivors: run.survivors,
    changed: tree !== facts.checkpoint?.tree,
    checkpoint,
  }
}
