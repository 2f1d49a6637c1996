import { writeFile } from 'node:fs/promises'
import type { Excess } from '../process/bounds/excess.ts'
import { type ProcessResult, runProcess } from '../process/run.ts'
import type { EngineCommand } from './requested.ts'

/** One invocation of a declared command as the engine of a session. */
export type CommandEngineRun = {
  command: EngineCommand
  /** Root of the worktree; the working directory. */
  tree: string
  prompt: string
  /** Where the prompt is written, outside the tree so that it is never part of the work. */
  promptFile: string
  sessionId: string
  /** From 1. */
  iteration: number
  env: Readonly<Record<string, string>>
  /** Where the tools of this run are (lib/engine/tools.ts); absent when it has none. */
  tools?: { url: string; token: string }
  timeoutMs: number
  outputFile: string
  marker: string
  /** The run's own folder (`ProcessSpec`). */
  place?: string
  signal?: AbortSignal
  onOutput?: (text: string) => void
}

/**
 * How an invocation ended, read from the process's end alone and never from what it printed. `finished` (exit
 * 0) says that the engine is done for this iteration and nothing about the work.
 */
type EngineStatus = 'finished' | 'failed' | 'unavailable' | 'killed' | 'timed_out' | 'cancelled' | Excess

export type EngineOutcome = {
  status: EngineStatus
  exit_code: number | null
  signal: string | null
  /** Why it could not be started. */
  error: string | null
  duration_ms: number
  output_bytes: number
  output_head: string
  output_tail: string
  /** Processes of the engine that outlived KILL. */
  survivors: number
}

/**
 * Runs the command at the tree's root with the prompt on its standard input and in GATEHOUSE_PROMPT_FILE, as
 * API.md says of `engine_command`, and with GATEHOUSE_TOOLS_URL and GATEHOUSE_TOOLS_TOKEN where it has tools.
 * Rejects only when the prompt file cannot be written.
 */
export const runCommandEngine = async (run: CommandEngineRun): Promise<EngineOutcome> => {
  await writeFile(run.promptFile, run.prompt, { mode: 0o600 })
  const result = await runProcess({
    command: run.command,
    cwd: run.tree,
    env: {
      ...run.env,
      GATEHOUSE_PROMPT_FILE: run.promptFile,
      GATEHOUSE_SESSION_ID: run.sessionId,
      GATEHOUSE_ITERATION: String(run.iteration),
      ...(run.tools === undefined ? {} : toolsEnvironment(run.tools, run.env)),
    },
    stdin: run.prompt,
    ...{ timeoutMs: run.timeoutMs, outputFile: run.outputFile, marker: run.marker, place: run.place },
    ...(run.signal === undefined ? {} : { signal: run.signal }),
    ...(run.onOutput === undefined ? {} : { onOutput: run.onOutput }),
  })
  return {
    status: engineStatus(result),
    ...{ exit_code: result.exitCode, signal: result.signal, error: result.error },
    ...{ duration_ms: result.durationMs, output_bytes: result.bytes },
    ...{ output_head: result.head, output_tail: result.tail, survivors: result.survivors },
  }
}

const toolsEnvironment = (
  { url, token }: NonNullable<CommandEngineRun['tools']>,
  env: CommandEngineRun['env'],
): Record<string, string> => ({
  GATEHOUSE_TOOLS_URL: url,
  GATEHOUSE_TOOLS_TOKEN: token,
  ...withoutProxy(new URL(url).hostname, env),
})

/** A proxy of the engine's can't reach this machine's loopback, and the token is not for it to see. */
const withoutProxy = (host: string, env: CommandEngineRun['env']): Record<string, string> => {
  if (!Object.keys(env).some((name) => /^(https?|all)_proxy$/i.test(name))) return {}
  const direct = env.no_proxy || env.NO_PROXY || ''
  const value = direct.trim() === '*' ? direct : [direct, host].filter(Boolean).join(',')
  return { no_proxy: value, NO_PROXY: value }
}

/** An engine that was not found, not executable or not started never got the task: it is `unavailable`. */
const engineStatus = (result: Pick<ProcessResult, 'ended' | 'exitCode' | 'signal'>): EngineStatus => {
  switch (result.ended) {
    case 'could_not_start':
      return 'unavailable'
    case 'timed_out':
    case 'cancelled':
    case 'tree_too_large':
    case 'output_too_large':
    case 'out_of_room':
      return result.ended
    case 'signalled':
      return result.signal === 'SIGKILL' ? 'killed' : 'failed'
    case 'exited':
      if (result.exitCode === 0) return 'finished'
      if (result.exitCode === 127 || result.exitCode === 126) return 'unavailable'
      return result.exitCode === 137 ? 'killed' : 'failed'
  }
}
