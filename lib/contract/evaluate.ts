import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { type KeptLog, keptLog } from '../kept-file.ts'
import { limits } from '../limits.ts'
import { type ProcessResult, type ProcessSpec, runProcess } from '../process/run.ts'
import type { Captures } from './capture.ts'
import { toldBy } from './environment/told.ts'
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
  /** The run's own folder (`ProcessSpec`). */
  place?: string
  signal?: AbortSignal
  surroundings?: Surroundings
}

/** What stands around the tree, looked at before each command and after it. */
export type Surroundings = {
  /** A sentence on what would make the outcome worthless; null when nothing would. */
  before: () => Promise<string | null>
  after: () => Promise<void>
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
    const foreign = (await place.surroundings?.before()) ?? null
    const result =
      foreign === null
        ? await runProcess(specOf(place, command, timeoutMs, file))
        : await notStarted(foreign, file)
    if (foreign === null) await place.surroundings?.after()
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
  const skipped = (reason: 'deadline' | 'cancelled' | 'foreign_surroundings', why = '') => ({
    result: { ...notRun(check, reason, evaluation.phase, why), runs: runs.length },
    ...{ runs, artifacts },
  })
  const judged = () =>
    judge(check, runs, {
      phase: evaluation.phase,
      captures: evaluation.captures,
      artifact: (run) => artifacts[run]?.name ?? null,
    })
  let wanted = check.runs
  while (runs.length < wanted) {
    if (evaluation.signal?.aborted) return skipped('cancelled')
    const left = timeLeft(evaluation)
    if (left <= 0) return skipped('deadline')
    const foreign = (await evaluation.surroundings?.before()) ?? null
    if (foreign !== null) return skipped('foreign_surroundings', foreign)
    const suffix = wanted > 1 ? `-run-${runs.length + 1}` : ''
    const base = `${evaluation.artifactPrefix}-${index + 1}-${slug(check.name)}${suffix}`
    const file = fileOf(evaluation, base)
    const run = await runOnce(evaluation, check, left, file)
    await evaluation.surroundings?.after()
    artifacts.push(await keptLog(base, file))
    runs.push(run)
    // What came while it ran may have answered it.
    const since = (await evaluation.surroundings?.before()) ?? null
    if (since !== null) return skipped('foreign_surroundings', since)
    if (couldNotRun(check, run)) break
    if (isDoubtful(evaluation, check, runs) && judged().verdict === 'failed') wanted = 2
  }
  return { result: judged(), runs, artifacts }
}

/** Whether a red on the untouched tree, which all later work is held against, rests on one short run. */
const isDoubtful = ({ phase }: Evaluation, check: ContractCheck, runs: readonly CheckRun[]): boolean => {
  const [first, ...more] = runs
  if (phase !== 'baseline' || check.runs > 1 || first === undefined || more.length > 0) return false
  return first.process.durationMs < limits.baselineRepeatMs
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
  const facts = await watch.facts(outputFile, process.omittedBytes)
  const run = { process, facts, clamped: left < own }
  const { tree, place: root } = evaluation
  return isClean(run) ? run : { ...run, told: await toldBy(process, outputFile, { tree, root }) }
}

/** Whether there is nothing to ask of a run's output: it exited with 0 and printed what it had to. */
const isClean = ({ process, facts }: CheckRun): boolean =>
  process.exitCode === 0 && (facts.assertion === null || facts.assertion === 'met')

/** The result of a setup command that could not be started, with the reason where its output would be. */
const notStarted = async (why: string, outputFile: string): Promise<ProcessResult> => {
  await writeFile(outputFile, why)
  return {
    ...{ ended: 'could_not_start', exitCode: null, signal: null, error: why, head: why, tail: '' },
    ...{ bytes: Buffer.byteLength(why), omittedBytes: 0, durationMs: 0, survivors: 0 },
  }
}

const specOf = (
  place: EvaluationPlace,
  command: string,
  timeoutMs: number,
  outputFile: string,
): ProcessSpec => ({
  ...{ command, cwd: place.tree, env: place.env, timeoutMs, outputFile, marker: place.marker },
  place: place.place,
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
