import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { limits } from '../limits.ts'
import { withoutNul } from '../text/utf8.ts'
import { type Bounds, type Excess, excessTexts, isExcess } from './bounds/excess.ts'
import { isShort, watchExcess } from './bounds/watch.ts'
import { endProcesses } from './end.ts'
import type { Place } from './found.ts'
import { processMark, workerMark } from './live.ts'
import { type KeptOutput, OutputCollector } from './output.ts'
import { openOutputPipe } from './pipe.ts'
import { startOf } from './stat.ts'

export { killMarked } from './end.ts'

export type ProcessSpec = {
  /** A string runs as `sh -c` exactly as given, without pipefail; a list is run without a shell. */
  command: string | readonly string[]
  cwd: string
  /** The whole environment; the marks are added to it. */
  env: Readonly<Record<string, string>>
  /** What the child reads from its standard input; absent, it reads end of file at once. */
  stdin?: string
  timeoutMs: number
  /**
   * Where the combined output goes, at most `limits.artifact` bytes of it: the first and the last half, the
   * gap counted.
   */
  outputFile: string
  /** Unique to this run (or to a set of runs that end together): finds processes that left the group. */
  marker: string
  /** A folder that the run has to itself: what outlives the child there is ended too, whatever it calls itself. */
  place?: string | undefined
  /** The output as text while it comes, cut anywhere but inside a character. Must not throw. */
  onOutput?: (text: string) => void
  /** The very bytes of the output while they come; a chunk is only valid during the call. Must not throw. */
  onBytes?: (chunk: Buffer) => void
  signal?: AbortSignal
  /** What it may take of the disk below `cwd`, and print; those of `limits.run` unless given. */
  bounds?: Bounds
}

export type ProcessResult = {
  ended: 'exited' | 'signalled' | 'timed_out' | 'cancelled' | 'could_not_start' | Excess
  /** As the system reported them, also for a process that was ended for time or cancelled. */
  exitCode: number | null
  signal: string | null
  /** Why it could not start, what it took too much of, or why the output file is incomplete. */
  error: string | null
  /**
   * The first `limits.outputHead` bytes and, from where those end at the earliest, the last
   * `limits.outputTail`.
   */
  head: string
  tail: string
  /** Size of the whole output. */
  bytes: number
  /** Bytes left out of the output file. */
  omittedBytes: number
  durationMs: number
  /** Processes that were still alive after TERM and KILL. */
  survivors: number
}

type Exit = { exitCode: number | null; signal: string | null }
type Cut = 'timed_out' | 'cancelled' | Excess

const longestTimer = 2 ** 31 - 1
/**
 * How long to wait for the end of the output once all known writers are gone; the pipe itself holds 64 KiB at
 * most.
 */
const drainMs = 500

/**
 * Runs a child in a process group of its own and resolves when it and everything that it started has ended:
 * what it left in the background, and what left the group but carries the mark, holds the output or has
 * anything in the run's place. Time-out,
 * cancel and an excess send TERM and, after `limits.killGraceMs`, KILL. Never rejects: what goes wrong is in the
 * result.
 */
export const runProcess = async (spec: ProcessSpec): Promise<ProcessResult> => {
  const startedAt = performance.now()
  const failed = (error: string): ProcessResult => ({
    ...{ ended: 'could_not_start', exitCode: null, signal: null, error, head: '', tail: '' },
    ...{ bytes: 0, omittedBytes: 0, durationMs: elapsed(startedAt), survivors: 0 },
  })
  if (spec.signal?.aborted)
    return { ...failed('cancelled before it started'), ended: 'cancelled', error: null }
  try {
    if (!isDirectory(spec.cwd)) return failed(`the working directory ${spec.cwd} does not exist`)
    return await runStarted(spec, startedAt, failed)
  } catch (error) {
    return failed(message(error))
  }
}

const runStarted = async (
  spec: ProcessSpec,
  startedAt: number,
  failed: (error: string) => ProcessResult,
): Promise<ProcessResult> => {
  const collector = new OutputCollector(spec.outputFile)
  let kept: KeptOutput | null = null
  try {
    const pipe = await openOutputPipe(`${spec.outputFile}.pipe`)
    const drained = collect(pipe.reader, spec, collector)
    let child: ChildProcess
    let exit: Promise<Exit>
    try {
      child = start(spec, pipe.writer)
      exit = exitOf(child)
      await spawned(child)
    } catch (error) {
      pipe.reader.destroy()
      return failed(message(error))
    } finally {
      pipe.closeWriter()
    }
    const group = child.pid ?? null
    const timeoutMs = spec.timeoutMs - (performance.now() - startedAt)
    const first = await firstOf(exit, timeoutMs, spec, () => collector.bytes)
    const found = { group, mark: spec.marker, place: placeOf(spec) }
    let survivors = await endProcesses(found)
    const end = await within(limits.killGraceMs, exit, noExit)
    if (!(await within(drainMs, drained, false))) {
      // Whoever still holds the output shed both the group and the mark; the pipe itself gives it away.
      survivors = await endProcesses({ ...found, pipe: pipe.identity })
      await within(drainMs, drained, false)
    }
    pipe.reader.destroy()
    const cut = first ?? (await lackedRoom(spec, end))
    kept = collector.finish()
    return {
      ended: cut ?? (end.signal === null ? 'exited' : 'signalled'),
      ...end,
      ...kept,
      ...(cut !== null && isExcess(cut) ? { error: `ended because ${excessTexts[cut]}` } : {}),
      durationMs: elapsed(startedAt),
      survivors,
    }
  } finally {
    if (kept === null) collector.finish()
  }
}

/** Nothing of a run is older than the process that runs it. */
const placeOf = ({ place }: ProcessSpec): Place | undefined =>
  place === undefined ? undefined : { folder: place, since: startOf(process.pid) }

const within = <Value>(ms: number, promise: Promise<Value>, otherwise: Value): Promise<Value> =>
  Promise.race([promise, sleep(ms, otherwise, { ref: false })])

const noExit: Exit = { exitCode: null, signal: null }

const start = (spec: ProcessSpec, writer: number): ChildProcess => {
  const [file, ...args] =
    typeof spec.command === 'string' ? ['/bin/sh', '-c', spec.command] : [...spec.command]
  if (file === undefined || file === '') throw new Error('the command is empty')
  const stdin = spec.stdin === undefined ? null : stdinFile(`${spec.outputFile}.stdin`, spec.stdin)
  try {
    return spawn(file, args, {
      cwd: spec.cwd,
      env: { ...inheritedMark(), ...spec.env, [processMark]: spec.marker },
      detached: true,
      stdio: [stdin ?? 'ignore', writer, writer],
    })
  } finally {
    if (stdin !== null) closeSync(stdin)
  }
}

/** A worker's own mark goes to all its children, so that they are found when the worker is no more. */
const inheritedMark = (): Record<string, string> => {
  const mark = process.env[workerMark]
  return mark === undefined ? {} : { [workerMark]: mark }
}

/**
 * An unnamed file rather than a pipe: a child that never reads can't hold anything up, and `/dev/stdin` can
 * be opened.
 */
const stdinFile = (path: string, text: string): number => {
  rmSync(path, { force: true })
  writeFileSync(path, text, { mode: 0o600, flag: 'wx' })
  try {
    return openSync(path, 'r')
  } finally {
    rmSync(path, { force: true })
  }
}

const spawned = (child: ChildProcess): Promise<void> =>
  new Promise((resolve, reject) => {
    child.once('spawn', resolve)
    child.once('error', reject)
  })

const exitOf = (child: ChildProcess): Promise<Exit> =>
  new Promise((resolve) => {
    child.once('exit', (exitCode, signal) => resolve({ exitCode, signal }))
  })

/** A child that failed on a disk without room fails by that, however fast it filled it. */
const lackedRoom = async (
  { cwd, bounds = limits.run }: ProcessSpec,
  { exitCode }: Exit,
): Promise<Excess | null> => (exitCode !== 0 && (await isShort(cwd, bounds.free)) ? 'out_of_room' : null)

/** Resolves to null when the child exits first, else to what ended it. */
const firstOf = async (
  exit: Promise<Exit>,
  timeoutMs: number,
  { cwd, signal, bounds = limits.run }: ProcessSpec,
  printed: () => number,
): Promise<Cut | null> => {
  const done = new AbortController()
  const timer = sleep(Math.min(Math.max(timeoutMs, 0), longestTimer), 'timed_out' as const, {
    signal: done.signal,
  }).catch(() => null)
  const cancelled = new Promise<Cut>((resolve) => {
    if (signal?.aborted) resolve('cancelled')
    signal?.addEventListener('abort', () => resolve('cancelled'), { once: true, signal: done.signal })
  })
  try {
    const excess = watchExcess(cwd, bounds, printed, done.signal)
    return await Promise.race([exit.then(() => null), timer, cancelled, excess])
  } finally {
    done.abort()
  }
}

const collect = (
  reader: NodeJS.ReadableStream,
  spec: Pick<ProcessSpec, 'onOutput' | 'onBytes'>,
  collector: OutputCollector,
): Promise<true> => {
  const decoder = new TextDecoder()
  const report = (text: string): void => {
    if (text !== '') spec.onOutput?.(withoutNul(text))
  }
  return new Promise((resolve) => {
    reader.on('data', (chunk: Buffer) => {
      collector.push(chunk)
      spec.onBytes?.(chunk)
      if (spec.onOutput) report(decoder.decode(chunk, { stream: true }))
    })
    reader.once('close', () => {
      report(decoder.decode())
      resolve(true)
    })
    reader.once('error', () => resolve(true))
  })
}

const isDirectory = (path: string): boolean =>
  statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false

const elapsed = (since: number): number => Math.round(performance.now() - since)

const message = (error: unknown): string => (error instanceof Error ? error.message : String(error))
