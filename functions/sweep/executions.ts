import type { SessionItem } from '../../lib/session/item.ts'
import type { RunningExecution } from '../../lib/store/machine.ts'
import type { Platform } from '../../lib/store/platform.ts'
import { each, inTurn, patienceMs, type Round, tell } from './round.ts'

/** The most executions of which the names are listed in one round; of more the round does not know which are gone. */
const listedPerRound = 20_000
/** Executions that are compared with their sessions in one round. */
const comparedPerRound = 100

export type Running = ReadonlyMap<string, RunningExecution>

/** All executions that run, by name; null when they are too many. A page is a thousand, so 2,000 sessions are two calls. */
export const listRunning = async (platform: Platform): Promise<Running | null> => {
  const { executions, next } = await platform.machine.running(listedPerRound)
  return next === null ? new Map(executions.map((execution) => [execution.name, execution])) : null
}

/** Whether a session's execution runs. The list may be a moment old: that one is missing from it is looked up. */
export const executionRuns = async ({ platform, running }: Round, item: SessionItem): Promise<boolean> => {
  const name = `${item.id}-${item.runtime.attempt}`
  if (running?.has(name)) return true
  const arn = item.runtime.execution_arn ?? platform.machine.executionArn(name)
  return (await platform.machine.status(arn)) === 'RUNNING'
}

/** The session of an execution's name, and its attempt; null for a name that is none of ours. */
const parsed = (name: string): { id: string; attempt: number } | null => {
  const [, id, attempt] = /^(ses_[0-9a-z]+)-([1-9]\d*)$/.exec(name) ?? []
  return id === undefined ? null : { id, attempt: Number(attempt) }
}

/** The ids of the sessions of which an execution runs. */
export const sessionsOf = (running: Running): Set<string> =>
  new Set([...running.keys()].flatMap((name) => parsed(name)?.id ?? []))

/** Executions that may have nothing to carry on: no live session is known to them, or it has a later one. */
export const suspects = (running: Running, live: ReadonlySet<string>): RunningExecution[] => {
  const latest = new Map<string, number>()
  for (const name of running.keys()) {
    const of = parsed(name)
    if (of) latest.set(of.id, Math.max(of.attempt, latest.get(of.id) ?? 0))
  }
  return [...running.values()].filter(({ name }) => {
    const of = parsed(name)
    return of !== null && (!live.has(of.id) || of.attempt < (latest.get(of.id) ?? 0))
  })
}

/** Why an execution carries nothing on; null when it does, or is on its way to its end. */
export const whyUnwanted = (
  { attempt }: { attempt: number },
  item: SessionItem | null,
  { now, running }: Pick<Round, 'now' | 'running'>,
): string | null => {
  if (!item) return 'its session is not there'
  const isOld = (since: string) => now - Date.parse(since) >= patienceMs
  const { runtime } = item
  if (runtime.attempt !== attempt) {
    const successor = running?.get(`${item.id}-${runtime.attempt}`)
    return !successor || isOld(successor.started_at) ? `attempt ${runtime.attempt} has taken over` : null
  }
  if (!isOld(runtime.looked_at)) return null
  return runtime.settled ? 'its session has ended' : runtime.resting ? 'its session rests' : null
}

const endUnwanted = async (round: Round, { arn, name, started_at }: RunningExecution): Promise<void> => {
  const { platform, now } = round
  if (now - Date.parse(started_at) < patienceMs) return
  const of = await platform.machine.inputOf(arn)
  if (!of) return
  const id = { team: of.team, id: of.session_id }
  const reason = whyUnwanted(of, await platform.sessions.get(id), round)
  if (reason === null) return
  await platform.machine.stop(arn, 'Gatehouse.Unwanted', reason)
  await tell(round, id, 'execution', `execution ${name} ran on: ${reason}`)
}

/** Ends the executions whose session is gone, over or at rest, or is carried on by another. */
export const endUnwantedExecutions = async (round: Round, live: ReadonlySet<string>): Promise<void> => {
  if (!round.running) return
  const some = inTurn(suspects(round.running, live), comparedPerRound, round.now)
  await each(
    round,
    some,
    ({ name }) => name,
    (execution) => endUnwanted(round, execution),
  )
}
