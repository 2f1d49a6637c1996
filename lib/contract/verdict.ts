import type { ProcessResult } from '../process/run.ts'
import type { Captures } from './capture.ts'
import { runnerIsMissing } from './environment/missing-runner.ts'
import type { Told } from './environment/told.ts'
import type { CheckRun, OutputFacts } from './facts.ts'
import type { CheckResult, ContractCheck, Verdict, VerdictReason } from './schema.ts'

export type Phase = 'baseline' | 'gate'

/** Why a check was not run at all. */
export type NotRun = 'deadline' | 'cancelled' | 'capture_missing' | 'setup_failed' | 'foreign_surroundings'

type Judgement = { verdict: Verdict; reason: VerdictReason }

/**
 * The verdict on a check from its runs (spec/coder-session.md 5.4). A check that could not run is never a
 * verdict on the work: not found (the shell's own 127), not executable (126), not started, killed by a signal
 * (137 is how a shell reports the kill of what it ran), out of time. Several runs have to agree.
 *
 * A capture, and on the baseline a differential check too, is always `captured` and so no part of any sum
 * (5.3): the one records, the other has nothing to compare with yet. Its reason is `capture` when it ran,
 * else what hindered it.
 */
export const judge = (
  check: ContractCheck,
  runs: readonly CheckRun[],
  facts: { phase: Phase; captures: Captures; artifact: (run: number) => string | null },
): CheckResult => {
  const judged = runs.map((run) => judgeRun(check, run, facts))
  const { verdict, reason, decisive } = combine(judged)
  const run = runs[decisive]
  if (run === undefined) return notRun(check, 'cancelled', facts.phase)
  const { process } = run
  return {
    name: check.name,
    ...{ passed: verdict === 'passed', verdict, ...besides({ verdict, reason }, run.told) },
    exit_code: process.ended === 'exited' ? process.exitCode : null,
    signal: process.ended === 'signalled' ? process.signal : null,
    ...{ output_head: process.head, output_tail: process.tail, output_bytes: process.bytes },
    artifact: facts.artifact(decisive),
    duration_ms: runs.reduce((sum, one) => sum + one.process.durationMs, 0),
    timed_out: process.ended === 'timed_out',
    deadline_clamped: process.ended === 'timed_out' && run.clamped,
    runs: runs.length,
  }
}

/**
 * The reason for a verdict, with what the output of one that is not green tells. A suspicion changes no verdict: whatever
 * the work prints, red stays red.
 */
const besides = (
  { verdict, reason }: Judgement,
  told: Told | undefined,
): Pick<CheckResult, 'reason' | 'suspicion' | 'output_digest'> => {
  if (!told || verdict === 'passed' || verdict === 'captured') return { reason }
  const suspicion = verdict === 'failed' ? told.suspicion : null
  return {
    reason: suspicion !== null && reason === 'exit_code' ? 'suspect_environment' : reason,
    ...(suspicion === null ? {} : { suspicion }),
    ...(told.digest === null ? {} : { output_digest: told.digest }),
  }
}

/** The result of a check that was not started; `why` stands where its output would. */
export const notRun = (check: ContractCheck, reason: NotRun, phase: Phase, why = ''): CheckResult => ({
  ...{
    name: check.name,
    passed: false,
    verdict: isGating(check, phase) ? 'could_not_run' : 'captured',
    reason,
  },
  ...{ exit_code: null, signal: null, output_head: why, output_tail: '' },
  ...{ output_bytes: Buffer.byteLength(why), artifact: null },
  ...{ duration_ms: 0, timed_out: false, deadline_clamped: reason === 'deadline', runs: 0 },
})

/** What a run would say by itself: repeating it is pointless once it could not run. */
export const couldNotRun = (check: ContractCheck, run: CheckRun): boolean => hindrance(check, run) !== null

const isGating = (check: ContractCheck, phase: Phase): boolean =>
  !check.baseline && (phase === 'gate' || check.differential === null)

const combine = (judged: readonly Judgement[]): Judgement & { decisive: number } => {
  const at = (verdict: Verdict): number => judged.findIndex((one) => one.verdict === verdict)
  const blocked = at('could_not_run')
  const failed = at('failed')
  const decisive = blocked !== -1 ? blocked : failed !== -1 ? failed : judged.length - 1
  const { verdict, reason } = judged[decisive] ?? { verdict: 'could_not_run', reason: 'cancelled' }
  if (verdict === 'failed' && at('passed') !== -1)
    return { verdict: 'flaky', reason: 'runs_disagree', decisive }
  return { verdict, reason, decisive }
}

const judgeRun = (
  check: ContractCheck,
  run: CheckRun,
  { phase, captures }: { phase: Phase; captures: Captures },
): Judgement => {
  const hindered = hindrance(check, run)
  if (!isGating(check, phase)) return { verdict: 'captured', reason: hindered ?? 'capture' }
  if (hindered !== null) return { verdict: 'could_not_run', reason: hindered }
  if (check.expect_exit_zero && run.process.exitCode !== 0) return { verdict: 'failed', reason: 'exit_code' }
  if (run.facts.assertion === 'not_json') return { verdict: 'failed', reason: 'output_not_json' }
  if (run.facts.assertion === 'missing') return { verdict: 'failed', reason: 'output_missing' }
  return check.differential === null
    ? { verdict: 'passed', reason: 'ok' }
    : compare(check.differential, run.facts, captures)
}

const hindrance = ({ command }: ContractCheck, { process, clamped }: CheckRun): VerdictReason | null => {
  switch (process.ended) {
    case 'could_not_start':
      return 'spawn_failed'
    case 'cancelled':
      return 'cancelled'
    case 'timed_out':
      return clamped ? 'deadline' : 'timed_out'
    case 'tree_too_large':
    case 'output_too_large':
    case 'out_of_room':
      return process.ended
    case 'signalled':
      return 'signal'
    case 'exited':
      return exitHindrance(process) ?? (runnerIsMissing(command, process) ? 'runner_missing' : null)
  }
}

const exitHindrance = ({ exitCode }: ProcessResult): VerdictReason | null => {
  if (exitCode === 127) return 'command_not_found'
  if (exitCode === 126) return 'not_executable'
  return exitCode === 137 ? 'signal' : null
}

const compare = (
  differential: NonNullable<ContractCheck['differential']>,
  facts: OutputFacts,
  captures: Captures,
): Judgement => {
  const before = Object.hasOwn(captures, differential.baseline) ? captures[differential.baseline] : undefined
  if (before === undefined || before.result.reason !== 'capture') {
    return { verdict: 'could_not_run', reason: 'capture_missing' }
  }
  return meets(differential.expect, before, facts)
    ? { verdict: 'passed', reason: 'ok' }
    : { verdict: 'failed', reason: 'differential' }
}

const meets = (
  expect: NonNullable<ContractCheck['differential']>['expect'],
  before: { digest: string; number: number | null },
  after: OutputFacts,
): boolean => {
  if (expect === 'changed') return before.digest !== after.digest
  if (expect === 'unchanged') return before.digest === after.digest
  if (before.number === null || after.number === null) return false
  const delta = after.number - before.number
  const { min = Number.NEGATIVE_INFINITY, max = Number.POSITIVE_INFINITY } = expect.delta_within
  return delta >= min && delta <= max
}
