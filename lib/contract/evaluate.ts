import path from 'node:path'
import { type KeptLog, keptLog } from '../kept-file.ts'
import { limits } from '../limits.ts'
import { type ProcessResult, type ProcessSpec, runProcess } from '../process/run.ts'
import type { Captures } from './capture.ts'
import { type CheckRun, OutputWatch } from './facts.ts'
import type { CheckResult, Contract, ContractCheck } from './schema.ts'
import { couldNotRun, judge, notRun, type Phase } from './verdict.ts'

/** Where and how the contract's commands run. */
export type EvaluationPlace = {
  contract: Contract
  /** Root of the tree to evaluate; the working directory of every command. */
  tree: string
  /** An existing directory outside the tree for the full outputs. */
  outputDirectory: string
  /**
   * Put before the names of artifacts, such as `validate-3`; has to be unique within the session and safe in
   * a key.
   */
  artifactPrefix: string
  env: Readonly<Record<string, string>>
  /** When the session's time ends, in the milliseconds of `now`; null when it has no limit. */
  deadlineAt: number | null
  now: () => number
  marker: string
  signal?: AbortSignal
}

export type Evaluation = EvaluationPlace & {
  phase: Phase
  /** What an earlier baseline captured; empty on the baseline itself. */
  captures: Captures
  onCheckStarted?: (check: ContractCheck) => void
  /** Waited for, with the outputs of the check's runs; whatever it throws ends the evaluation. */
  onCheckCompleted?: (result: CheckResult, artifacts: readonly KeptLog[]) => Promise<void>
}

export type EvaluationResult = { results: CheckResult[]; artifacts: KeptLog[]; captures: Captures }

export type SetupResult =
  | { ok: true; artifacts: KeptLog[] }
  | { ok: false; artifacts: KeptLog[]; command: string; result: ProcessResult }

/**
 * Runs every check in order, also after a failure (spec/coder-session.md 5.4). A capture runs on the baseline
 * only; at a gate its stored result stands in its place, so that results always line up with the checks. A
 * check for which no time is left isn't started. Never rejects for what a command does.
 */
export const evaluateContract = async (evaluation: Evaluation): Promise<EvaluationResult> => {
  const results: CheckResult[] = []
  const artifacts: KeptLog[] = []
  const captures: Captures = { ...evaluation.captures }
  for (const [index, check] of evaluation.contract.checks.entries()) {
    if (check.baseline && evaluation.phase === 'gate') {
      results.push(carried(check, captures))
      continue
    }
    evaluation.onCheckStarted?.(check)
    const done = await evaluateCheck(evaluation, check, index)
    artifacts.push(...done.artifacts)
    results.push(done.result)
    const [run] = done.runs
    if (check.baseline && run !== undefined) {
      captures[check.name] = { digest: run.facts.digest, number: run.facts.number, result: done.result }
    }
    await evaluation.onCheckCompleted?.(done.result, done.artifacts)
  }
  return { results, artifacts, captures }
}

/**
 * Runs the setup commands in order up to the first that doesn't exit 0: that is a preflight failure, not a
 * verdict.
 */
export const runSetup = async (
  place: EvaluationPlace,
  watch: {
    onStarted?: (command: string) => void
    /** Waited for; whatever it throws ends the setup. */
    onCompleted?: (command: string, result: ProcessResult, artifact: KeptLog) => Promise<void>
  } = {},
): Promise<SetupResult> => {
  const artifacts: KeptLog[] = []
  for (const [index, command] of place.contract.setup.entries()) {
    const base = `${place.artifactPrefix}-setup-${index + 1}`
    const file = fileOf(place, base)
    watch.onStarted?.(command)
    const timeoutMs = Math.max(0, Math.min(limits.setupTimeoutMs, timeLeft(place)))
    const result = await runProcess(specOf(place, command, timeoutMs, file))
    const artifact = await keptLog(base, file)
    artifacts.push(artifact)
    await watch.onCompleted?.(command, result, artifact)
    if (result.ended !== 'exited' || result.exitCode !== 0) return { ok: false, artifacts, command, result }
  }
  return { ok: true, artifacts }
}

const evaluateCheck = async (
  evaluation: Evaluation,
  check: ContractCheck,
  index: number,
): Promise<{ result: CheckResult; runs: CheckRun[]; artifacts: KeptLog[] }> => {
  const runs: CheckRun[] = []
  const artifacts: KeptLog[] = []
  const skipped = (reason: 'deadline' | 'cancelled') => ({
    result: { ...notRun(check, reason, evaluation.phase), runs: runs.length },
    ...{ runs, artifacts },
  })
  while (runs.length < check.runs) {
    if (evaluation.signal?.aborted) return skipped('cancelled')
    const left = timeLeft(evaluation)
    if (left <= 0) return skipped('deadline')
    const suffix = check.runs > 1 ? `-run-${runs.length + 1}` : ''
    const base = `${evaluation.artifactPrefix}-${index + 1}-${slug(check.name)}${suffix}`
    const file = fileOf(evaluation, base)
    const run = await runOnce(evaluation, check, left, file)
    artifacts.push(await keptLog(base, file))
    runs.push(run)
    if (couldNotRun(run)) break
  }
  const result = judge(check, runs, {
    phase: evaluation.phase,
    captures: evaluation.captures,
    artifact: (run) => artifacts[run]?.name ?? null,
  })
  return { result, runs, artifacts }
}

const runOnce = async (
  evaluation: Evaluation,
  check: ContractCheck,
  left: number,
  outputFile: string,
): Promise<CheckRun> => {
  const own = Math.min(check.timeout_secs, limits.checkTimeoutSecs.max) * 1000
  const watch = new OutputWatch(check)
  const process = await runProcess({
    ...specOf(evaluation, check.command, Math.min(own, left), outputFile),
    onBytes: (chunk) => watch.push(chunk),
  })
  return { process, facts: await watch.facts(outputFile, process.omittedBytes), clamped: left < own }
}

const specOf = (
  place: EvaluationPlace,
  command: string,
  timeoutMs: number,
  outputFile: string,
): ProcessSpec => ({
  ...{ command, cwd: place.tree, env: place.env, timeoutMs, outputFile, marker: place.marker },
  ...(place.signal === undefined ? {} : { signal: place.signal }),
})

const timeLeft = (place: EvaluationPlace): number =>
  place.deadlineAt === null ? Number.POSITIVE_INFINITY : place.deadlineAt - place.now()

const carried = (check: ContractCheck, captures: Captures): CheckResult => {
  const capture = Object.hasOwn(captures, check.name) ? captures[check.name] : undefined
  return capture?.result ?? notRun(check, 'capture_missing', 'gate')
}

const fileOf = (place: EvaluationPlace, base: string): string =>
  path.join(place.outputDirectory, `${base}.log`)

/** A name's letters and digits as part of an object key; what tells names apart is the number before it. */
const slug = (name: string): string =>
  name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 40)
    .replace(/^-+|-+$/g, '') || 'check'
