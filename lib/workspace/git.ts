import { join } from 'node:path'
import { execa } from 'execa'
import { limits } from '../limits.ts'
import { firstOf, tailStart } from '../text/shorten.ts'
import { visible } from '../text/visible.ts'
import { type Credentials, localEnvironment, remoteEnvironment } from './git-environment.ts'

/** Why a git process gave no answer; `exit` is git's own refusal, the others are ours or the system's. */
export type GitErrorKind = 'exit' | 'signal' | 'timeout' | 'cancelled' | 'output' | 'spawn'

/** Thrown when a git process of ours did not end as its caller allows. Callers branch on `kind` and `exitCode`. */
export class GitError extends Error {
  readonly args: string
  readonly kind: GitErrorKind
  readonly exitCode: number | null
  /** The end of git's complaint, for people. */
  readonly stderr: string

  constructor(args: string, kind: GitErrorKind, exitCode: number | null, stderr: string) {
    super(
      `git ${args}: ${kind}${exitCode === null ? '' : ` ${exitCode}`}${stderr === '' ? '' : `: ${stderr}`}`,
    )
    this.name = 'GitError'
    this.args = args
    this.kind = kind
    this.exitCode = exitCode
    this.stderr = stderr
  }
}

export type GitOptions = {
  /** Repository, tree and index the process works on; never looked up from the working directory. */
  gitDir?: string
  workTree?: string
  index?: string
  /** Where objects are written, and read beside the repository's own, when not into the repository itself. */
  objects?: string
  cwd?: string
  input?: string | Uint8Array
  inputFile?: string
  /** Send standard output to this new file instead of returning it. */
  outputFile?: string
  /** Exit codes that are answers; any other throws. */
  allow?: number[]
  timeoutMs?: number
  signal?: AbortSignal | undefined
  /** The process may talk to this address. */
  remote?: { url: string; credentials?: Credentials | undefined }
  /** Further variables, such as a commit's dates. */
  env?: Record<string, string>
  /** Told the id of the process, which is also that of its group. */
  onSpawn?: (pid: number) => void
}

export type GitResult = {
  exitCode: number
  stdout: Buffer
  stderr: string
  /** Last HTTP status that a remote answered, null when none did. */
  httpStatus: number | null
}

const killGroup = (pid: number | undefined, signal: NodeJS.Signals): void => {
  if (pid === undefined) return
  try {
    process.kill(-pid, signal)
  } catch {
    // The group is gone already.
  }
}

const elsewhere = ({ objects, gitDir }: GitOptions): Record<string, string> =>
  objects === undefined || gitDir === undefined
    ? {}
    : {
        GIT_OBJECT_DIRECTORY: objects,
        GIT_ALTERNATE_OBJECT_DIRECTORIES: JSON.stringify(join(gitDir, 'objects')),
      }

const variables = (options: GitOptions): Record<string, string> => ({
  ...(options.remote === undefined
    ? localEnvironment()
    : {
        ...remoteEnvironment(options.remote.url, options.remote.credentials),
        // The protocol's own trace is the only place where a status code, and not prose, can be read.
        GIT_TRACE_CURL: '3',
        GIT_TRACE_CURL_NO_DATA: '1',
      }),
  ...(options.gitDir === undefined ? {} : { GIT_DIR: options.gitDir }),
  ...(options.workTree === undefined ? {} : { GIT_WORK_TREE: options.workTree }),
  ...(options.index === undefined ? {} : { GIT_INDEX_FILE: options.index }),
  ...elsewhere(options),
  ...options.env,
})

const bytes = (value: unknown): Buffer =>
  value instanceof Uint8Array
    ? Buffer.from(value.buffer, value.byteOffset, value.byteLength)
    : Buffer.alloc(0)

const statusOf = (trace: Buffer): number | null => {
  const last = [...trace.toString('latin1').matchAll(/Recv header: HTTP\/[\d.]+ (\d{3})/g)].at(-1)?.[1]
  return last === undefined ? null : Number(last)
}

/**
 * Runs one git process in its own process group with a closed environment, a time limit and bounded output.
 * Throws GitError unless it exits with an allowed code; on abort or time-out the whole group is ended.
 */
export const git = async (args: string[], options: GitOptions = {}): Promise<GitResult> => {
  const summary = firstOf(args.join(' '), 200)
  if (options.signal?.aborted) throw new GitError(summary, 'cancelled', null, '')
  const child = execa('git', args, {
    cwd: options.cwd ?? '/',
    env: variables(options),
    extendEnv: false,
    detached: true,
    encoding: 'buffer',
    stripFinalNewline: false,
    reject: false,
    maxBuffer: limits.gitOutput,
    buffer: { stdout: options.outputFile === undefined },
    stdio: [
      options.inputFile === undefined
        ? options.input === undefined
          ? 'ignore'
          : 'pipe'
        : { file: options.inputFile },
      options.outputFile === undefined ? 'pipe' : { file: options.outputFile },
      'pipe',
      options.remote === undefined ? 'ignore' : 'pipe',
    ],
    ...(options.input === undefined ? {} : { input: options.input }),
  })
  const pid = child.pid
  if (pid !== undefined) options.onSpawn?.(pid)
  let ended: 'timeout' | 'cancelled' | null = null
  let force: NodeJS.Timeout | undefined
  const end = (why: 'timeout' | 'cancelled') => {
    ended ??= why
    killGroup(pid, 'SIGTERM')
    force ??= setTimeout(() => killGroup(pid, 'SIGKILL'), limits.killGraceMs)
  }
  const cancel = () => end('cancelled')
  const timer = setTimeout(() => end('timeout'), options.timeoutMs ?? limits.gitTimeoutMs)
  options.signal?.addEventListener('abort', cancel, { once: true })
  const result = await child.finally(() => {
    clearTimeout(timer)
    clearTimeout(force)
    options.signal?.removeEventListener('abort', cancel)
  })
  const said = bytes(result.stderr)
  const complaint = visible(said.subarray(tailStart(said, limits.stateOutput)).toString('utf8')).trim()
  const exitCode = result.exitCode ?? null
  const refuse = (kind: GitErrorKind) => {
    killGroup(pid, 'SIGKILL')
    return new GitError(summary, kind, exitCode, complaint)
  }
  if (ended !== null) throw refuse(ended)
  if (result.isMaxBuffer) throw refuse('output')
  if (exitCode === null) throw refuse(result.signal === undefined ? 'spawn' : 'signal')
  if (!(options.allow ?? [0]).includes(exitCode)) throw refuse('exit')
  return {
    exitCode,
    stdout: bytes(result.stdout),
    stderr: complaint,
    httpStatus: statusOf(bytes(result.stdio[3])),
  }
}

/** Standard output of a command that answers with one word, such as an object's name. */
export const gitWord = async (args: string[], options: GitOptions = {}): Promise<string> =>
  (await git(args, options)).stdout.toString('latin1').trim()

/** The NUL-terminated records of an output made with `-z`, as bytes. */
export const records = (output: Buffer): Buffer[] => {
  const found: Buffer[] = []
  for (let start = 0; start < output.length; ) {
    const stop = output.indexOf(0, start)
    const end = stop === -1 ? output.length : stop
    found.push(output.subarray(start, end))
    start = end + 1
  }
  return found
}
