import { join } from 'node:path'
import { type EngineOutcome, runCommandEngine } from '../../lib/engine/command.ts'
import { buildPrompt } from '../../lib/engine/prompt.ts'
import type { GuidanceMessage, Reports } from '../../lib/engine/tools.ts'
import { keptLog } from '../../lib/kept-file.ts'
import { unknownUsage } from '../../lib/session/document.ts'
import type { Command, Result } from '../../lib/session/protocol.ts'
import type { Workspace } from '../../lib/workspace/workspace.ts'
import { createAgentJournal } from './agent-journal.ts'
import { contractOf } from './evaluate.ts'
import { createAsk } from './questions.ts'
import { commandSuffix, outputFolder, timeLeft, WorkerFault, type WorkerSession } from './session.ts'
import { startTools, type Tools } from './tools.ts'

type Code = Extract<Result, { outcome: 'Code' }>

/** What an engine's run left behind beside its files. */
export type EngineRun = {
  run: Omit<EngineOutcome, 'status'> & { status: Code['status'] }
  reported: Pick<Code, 'report' | 'nomination' | 'usage' | 'guidance_applied'>
  /** Its whole output, and under which name that is kept. */
  output: { name: string; file: string }
}

/** How often the cost that an engine reports is compared with what is left of the budget. */
const budgetPollMs = 200

/** The guidance that came after the first `given` messages; a message is known by its place among all. */
const guidanceAfter = (messages: readonly string[], given: number): GuidanceMessage[] =>
  messages.map((text, index) => ({ id: String(index), text })).slice(given)

const toolsFor = (session: WorkerSession, { session: { steering_messages } }: Command): Promise<Tools> =>
  startTools({
    journal: createAgentJournal(session.client, session.folder),
    ask: createAsk(session.client, Date.now),
    guidance: async () => guidanceAfter(await session.client.guidance(), steering_messages.length),
    now: Date.now,
  })

const isReached = (limit: number, { usage }: Reports): boolean =>
  usage !== null && usage.cost_usd !== null && usage.cost_usd >= limit

/** Fires when the cost that is reported reaches the limit; never when there is none. */
const watchBudget = (limit: number | null, reports: () => Reports) => {
  const end = new AbortController()
  const look = () => {
    if (limit !== null && isReached(limit, reports())) end.abort()
  }
  const timer = limit === null ? null : setInterval(look, budgetPollMs)
  return {
    signal: end.signal,
    close: () => {
      if (timer !== null) clearInterval(timer)
    },
  }
}

const usageOf = ({ usage }: Reports): Code['usage'] => {
  if (usage === null) return unknownUsage
  const { input_tokens, output_tokens, cost_usd, complete } = usage
  return { input_tokens, output_tokens, cost_usd, complete }
}

/** What the session is told of an engine's reports; `inPrompt` is how much guidance its prompt held. Pure. */
const reportedIn = (reports: Reports, inPrompt: number): EngineRun['reported'] => ({
  report: reports.status && { ...reports.status, reason: reports.status.reason ?? '' },
  nomination: reports.nomination,
  usage: usageOf(reports),
  guidance_applied: inPrompt + reports.applied.length,
})

/**
 * Runs the engine once in the worktree, with its tools at hand for as long as it runs, until it ends, its time is over or
 * the budget is used up. Throws WorkerFault when the worker was told to stop.
 */
export const runEngine = async (
  session: WorkerSession,
  command: Command,
  workspace: Workspace,
): Promise<EngineRun> => {
  const { session: facts } = command
  if (facts.engine_command === null) throw new WorkerFault('the session names no engine command')
  const { engine_command, iterations: iteration, steering_messages: steering, intent } = facts
  const name = `engine-${iteration}-${commandSuffix(command)}`
  const outputFile = join(outputFolder(session), `${name}.log`)
  const { failing } = command
  const tools = await toolsFor(session, command)
  const budget = watchBudget(command.budget_left_usd, tools.reports)
  try {
    session.reporter.event({ type: 'engine_started', data: { engine: facts.engine, iteration } })
    const run = await runCommandEngine({
      command: engine_command,
      tree: workspace.tree,
      prompt: buildPrompt({
        ...{ intent, steering, contract: contractOf(command), iteration, failing },
        sameOutput: facts.same_output,
        tools: true,
      }),
      promptFile: join(session.folder, 'prompt.txt'),
      sessionId: facts.id,
      iteration,
      env: session.env,
      tools: { url: tools.url, token: tools.token },
      timeoutMs: timeLeft(command, Date.now()),
      outputFile,
      marker: command.id,
      place: session.root,
      signal: AbortSignal.any([session.signal, budget.signal]),
      onOutput: (text) => session.reporter.engineOutput(iteration, text),
    })
    if (session.signal.aborted) throw new WorkerFault('stopped while the engine ran')
    await tools.close()
    const status = run.status === 'cancelled' ? 'over_budget' : run.status
    const output = await keptLog(name, outputFile)
    return { run: { ...run, status }, reported: reportedIn(tools.reports(), steering.length), output }
  } finally {
    budget.close()
    await tools.close()
  }
}
