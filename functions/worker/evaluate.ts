import { createHash } from 'node:crypto'
import type { Captures } from '../../lib/contract/capture.ts'
import { evaluateContract, runSetup } from '../../lib/contract/evaluate.ts'
import type { CheckResult, Contract } from '../../lib/contract/schema.ts'
import { notRun } from '../../lib/contract/verdict.ts'
import type { KeptLog } from '../../lib/kept-file.ts'
import { limits } from '../../lib/limits.ts'
import type { ProcessResult } from '../../lib/process/run.ts'
import type { Command, Result } from '../../lib/session/protocol.ts'
import { firstOf } from '../../lib/text/shorten.ts'
import { visible } from '../../lib/text/visible.ts'
import type { Place } from '../../lib/workspace/surroundings/place.ts'
import type { Workspace } from '../../lib/workspace/workspace.ts'
import { commandSuffix, deadlineOf, outputFolder, WorkerFault, type WorkerSession } from './session.ts'
import { judgedIn } from './surroundings.ts'
import { uploadWorkPatch } from './work-patch.ts'

const markOf = (command: Command, what: string): string =>
  createHash('sha256').update(`${command.id} ${what}`).digest('hex').slice(0, 24)

const placeOf = (
  session: WorkerSession,
  command: Command,
  contract: Contract,
  place: Place,
  what: string,
) => ({
  contract,
  ...judgedIn(session, place),
  outputDirectory: outputFolder(session),
  artifactPrefix: `${what}-${commandSuffix(command)}`,
  deadlineAt: deadlineOf(command),
  now: Date.now,
  marker: markOf(command, what),
  place: session.root,
  signal: session.signal,
})

export const contractOf = (command: Command): Contract => {
  if (!command.session.contract) throw new WorkerFault('the session has no contract')
  return command.session.contract
}

/** Uploads logs, before anything says that they are there. */
const keep = (session: WorkerSession, logs: readonly KeptLog[]): Promise<void> =>
  session.client.upload(logs.map((log) => ({ kind: 'artifact', ...log })))

/** How the setup failed, in words, with its process's end and the artifact that holds its output. */
export type SetupFailure = { detail: string; result: ProcessResult; artifact: string | null }

/** A setup that failed after the baseline: around the work, not in it, and tried again. Says where the work is to be seen. */
export const setupFault = async (
  session: WorkerSession,
  command: Command,
  workspace: Workspace,
  { detail }: SetupFailure,
): Promise<Result> => {
  const patch = await uploadWorkPatch(session, command, workspace)
  const work = patch === null ? '' : `the work so far is in the artifact ${patch}; `
  return { outcome: 'setup_failed', detail: firstOf(`${work}${detail}`, limits.reason) }
}

/** What each check comes to where the setup failed before it: it could not run, and shows what the setup printed. */
export const withoutSetup = (contract: Contract, { result, artifact }: SetupFailure): CheckResult[] =>
  contract.checks.map((check) => ({
    ...notRun(check, 'setup_failed', 'baseline'),
    ...{ exit_code: result.exitCode, signal: result.signal, artifact },
    ...{ output_head: result.head, output_tail: result.tail, output_bytes: result.bytes },
  }))

/**
 * Runs the contract's setup in a fresh tree; a command that fails there is nobody's verdict (API.md, `contract.setup`).
 * Null when it went well; a result where the run's time is over.
 */
export const setUp = async (
  session: WorkerSession,
  command: Command,
  place: Place,
  what: string,
): Promise<{ ended: Result } | { failure: SetupFailure } | null> => {
  const contract = contractOf(command)
  if (contract.setup.length === 0) return null
  const done = await runSetup(placeOf(session, command, contract, place, what), {
    onStarted: (line) => session.reporter.event({ type: 'setup_started', data: { command: line } }),
    onCompleted: async (line, { ended, exitCode, head, tail }, log) => {
      await keep(session, [log])
      const ok = ended === 'exited' && exitCode === 0
      const data = { command: line, ok, output_head: head, output_tail: tail, artifact: log.name }
      session.reporter.event({ type: 'setup_completed', data })
    },
  })
  if (session.signal.aborted) throw new WorkerFault('stopped during setup')
  if (done.ok) return null
  const { result } = done
  const deadline = deadlineOf(command)
  if (result.ended === 'timed_out' && deadline !== null && Date.now() >= deadline) {
    const error = `the run’s time ended during setup: ${firstOf(visible(done.command), 200)}`
    return { ended: { outcome: 'failed', failure_kind: 'budget_exhausted', error } }
  }
  const how = result.ended === 'exited' ? `exited with ${result.exitCode}` : result.ended.replaceAll('_', ' ')
  const printed = firstOf(visible((result.tail || result.head).trimEnd().split('\n').at(-1) ?? ''), 200)
  const detail = `setup command “${firstOf(visible(done.command), 200)}” ${how}${printed === '' ? '' : `: ${printed}`}`
  return { failure: { detail, result, artifact: done.artifacts.at(-1)?.name ?? null } }
}

/** Evaluates the contract in a tree, watched by its events; full outputs become artifacts. */
export const evaluate = async (
  session: WorkerSession,
  command: Command,
  options: { place: Place; what: string; phase: 'baseline' | 'gate' },
): Promise<{ results: CheckResult[]; captures: Captures }> => {
  const { results, captures } = await evaluateContract({
    ...placeOf(session, command, contractOf(command), options.place, options.what),
    phase: options.phase,
    captures: command.captures,
    onCheckStarted: ({ name }) => session.reporter.event({ type: 'check_started', data: { name } }),
    onCheckCompleted: async (result, logs) => {
      await keep(session, logs)
      session.reporter.event({ type: 'check_completed', data: { result } })
    },
  })
  if (session.signal.aborted) throw new WorkerFault('stopped during the checks')
  return { results, captures }
}
