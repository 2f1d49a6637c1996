import { createHash } from 'node:crypto'
import type { Captures } from '../../lib/contract/capture.ts'
import { evaluateContract, runSetup } from '../../lib/contract/evaluate.ts'
import type { CheckResult, Contract } from '../../lib/contract/schema.ts'
import type { Command, Result } from '../../lib/session/protocol.ts'
import { firstOf } from '../../lib/text/shorten.ts'
import { visible } from '../../lib/text/visible.ts'
import { commandSuffix, deadlineOf, outputFolder, WorkerFault, type WorkerSession } from './session.ts'

const markOf = (command: Command, what: string): string =>
  createHash('sha256').update(`${command.id} ${what}`).digest('hex').slice(0, 24)

const place = (session: WorkerSession, command: Command, contract: Contract, tree: string, what: string) => ({
  contract,
  tree,
  outputDirectory: outputFolder(session),
  artifactPrefix: `${what}-${commandSuffix(command)}`,
  env: session.env,
  deadlineAt: deadlineOf(command),
  now: Date.now,
  marker: markOf(command, what),
  signal: session.signal,
})

export const contractOf = (command: Command): Contract => {
  if (!command.session.contract) throw new WorkerFault('the session has no contract')
  return command.session.contract
}

/** Runs the contract's setup in a fresh tree; a command that fails there is nobody's verdict (API.md, `contract.setup`). */
export const setUp = async (
  session: WorkerSession,
  command: Command,
  tree: string,
  what: string,
): Promise<Result | null> => {
  const contract = contractOf(command)
  if (contract.setup.length === 0) return null
  const done = await runSetup(place(session, command, contract, tree, what), {
    onStarted: (line) => session.reporter.event({ type: 'setup_started', data: { command: line } }),
    onCompleted: (line, { ended, exitCode, head, tail }, artifact) => {
      const ok = ended === 'exited' && exitCode === 0
      const data = { command: line, ok, output_head: head, output_tail: tail, artifact }
      session.reporter.event({ type: 'setup_completed', data })
    },
  })
  if (session.signal.aborted) throw new WorkerFault('stopped during setup')
  await session.client.upload(done.artifacts.map((artifact) => ({ kind: 'artifact', ...artifact })))
  if (done.ok) return null
  const { result } = done
  const deadline = deadlineOf(command)
  if (result.ended === 'timed_out' && deadline !== null && Date.now() >= deadline) {
    const error = `the run’s time ended during setup: ${firstOf(visible(done.command), 200)}`
    return { outcome: 'failed', failure_kind: 'budget_exhausted', error }
  }
  const how = result.ended === 'exited' ? `exited with ${result.exitCode}` : result.ended.replaceAll('_', ' ')
  return {
    outcome: 'failed',
    failure_kind: 'configuration',
    error: `setup command “${firstOf(visible(done.command), 200)}” ${how}`,
  }
}

/** Evaluates the contract in a tree, watched by its events; full outputs become artifacts. */
export const evaluate = async (
  session: WorkerSession,
  command: Command,
  options: { tree: string; what: string; phase: 'baseline' | 'gate' },
): Promise<{ results: CheckResult[]; captures: Captures }> => {
  const { results, artifacts, captures } = await evaluateContract({
    ...place(session, command, contractOf(command), options.tree, options.what),
    phase: options.phase,
    captures: command.captures,
    onCheckStarted: ({ name }) => session.reporter.event({ type: 'check_started', data: { name } }),
    onCheckCompleted: (result) => session.reporter.event({ type: 'check_completed', data: { result } }),
  })
  if (session.signal.aborted) throw new WorkerFault('stopped during the checks')
  await session.client.upload(artifacts.map((artifact) => ({ kind: 'artifact', ...artifact })))
  return { results, captures }
}
