import { GatehouseError } from '../errors.ts'
import { fieldErrors } from '../field-errors.ts'
import { newId } from '../ids.ts'
import { readRecord } from '../journal/agent/envelope.ts'
import type { AgentFact } from '../journal/agent/records.ts'
import { apply, skip } from '../journal/agent/reducer.ts'
import { AgentReplayError, type ReplayProblem } from '../journal/agent/replay-error.ts'
import { type AgentState, activeView } from '../journal/agent/state.ts'
import { laneAt } from '../journal/agent/store.ts'
import type { Context, Statement } from '../journal/entry.ts'
import type { EventFact } from '../journal/event-facts.ts'
import { isAgentFact } from '../journal/facts.ts'
import { limits } from '../limits.ts'
import type { Refusal } from './agent-protocol.ts'

/** A fact to append, with its data in place; `branch` belongs to records alone. */
export type Given = {
  readonly fact: AgentFact | EventFact
  readonly context: Pick<Context, 'branch' | 'causation_id' | 'correlation_id' | 'metadata'>
}

/** What an entry's line holds beside data and metadata, in bytes: no less than any has. */
const lineOverhead = 800

/** The most that the lines of some facts take beside their data, in bytes. */
export const besideData = (contexts: readonly Pick<Context, 'metadata'>[]): number =>
  contexts.reduce(
    (sum, { metadata }) =>
      sum + lineOverhead + (metadata === undefined ? 0 : Buffer.byteLength(JSON.stringify(metadata))),
    0,
  )

/**
 * Which data has no room in the entries of one batch and is kept beside the journal: all that is over an entry's limit,
 * and of the rest the largest until the others fit. `sizes` are those of the data and `beside` what else the lines hold,
 * in bytes. Whoever leaves out what this names finds nothing more to leave out.
 */
export const setAside = (sizes: readonly number[], beside: number): ReadonlySet<number> => {
  const { bytes } = limits.journalBatch
  const room = Math.min(bytes, 2 * bytes - beside)
  const aside = new Set(sizes.flatMap((size, at) => (size > limits.journalEntry ? [at] : [])))
  let rest = sizes.reduce((sum, size, at) => sum + (aside.has(at) ? 0 : size), 0)
  for (const [at, size] of [...sizes.entries()].toSorted(([, a], [, b]) => b - a)) {
    if (rest <= room) break
    if (aside.has(at)) continue
    aside.add(at)
    rest -= size
  }
  return aside
}

const reasonOf = ({ kind, ...rest }: ReplayProblem): string =>
  Object.values(rest).map(String).join(', ') || kind

const refused = (index: number, problem: ReplayProblem, cause: unknown): GatehouseError => {
  const refusal: Refusal = { index, kind: problem.kind, reason: reasonOf(problem) }
  const message = `${refusal.kind}: ${refusal.reason}`
  return new GatehouseError(
    'record_refused',
    `record ${index} can’t follow what the journal holds: ${message}`,
    {
      errors: [{ path: `facts.${index}`, message }],
      extra: { refusal },
      cause,
    },
  )
}

/** Where a record belongs whose writer says nothing: the branch that it speaks of, or the active one. */
const branchOf = (agent: AgentState, fact: AgentFact): string | null =>
  fact.type === 'branch_created' || fact.type === 'active_branch_changed'
    ? fact.data.branch_id
    : laneAt(agent.store, activeView(agent).lane).branch

/**
 * Places facts behind an agent's state, one after the other, each as it will stand in the journal; the state has to
 * belong to the very entry behind which they are written. A journal never holds what a replay would refuse: throws
 * `record_refused` for the first record that can't stand where it would, `invalid_request` for one that is none. Pure
 * but for the fresh ids; answers what is to be written, and the state that this comes to.
 */
export const place = (
  state: AgentState,
  given: readonly Given[],
  time: string,
): { statements: Statement[]; agent: AgentState } => {
  const { session_id } = state
  let agent = state
  const statements = given.map(({ fact, context }, index): Statement => {
    const sequence = agent.tail_sequence + 1
    if (!isAgentFact(fact)) {
      agent = skip(agent, { session_id, sequence })
      return { ...fact, context: { ...context, time } }
    }
    const placed = { ...context, id: newId('evt'), branch: context.branch ?? branchOf(agent, fact), time }
    const { branch, id, ...caused } = placed
    const reading = readRecord({ ...caused, sequence, id, session_id, branch, ...fact })
    if (!reading.ok)
      throw new GatehouseError('invalid_request', 'the request does not validate', {
        errors: fieldErrors(reading.issues, ['facts', index]),
      })
    try {
      agent = apply(agent, reading.record)
    } catch (error) {
      throw error instanceof AgentReplayError ? refused(index, error.problem, error) : error
    }
    return { ...fact, context: placed }
  })
  return { statements, agent }
}
