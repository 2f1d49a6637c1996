import { GatehouseError } from '../errors.ts'
import { type Legacy, noLegacy } from './creation.ts'
import type { Document } from './document.ts'
import { type ContinueSession, type StartSession, startSessionSchema } from './start.ts'
import { isTerminal } from './states.ts'

/** What a continuation starts from: a base, what it takes over, and whether that is unfinished work. */
export type Continuation = { start: StartSession; legacy: Legacy }

const refuse = (detail: string): GatehouseError => new GatehouseError('illegal_transition', detail)

/** The options of the session before, which hold where the new request says nothing else. */
const before = (document: Document) => ({
  repo: document.repo,
  engine: document.requested_engine,
  engine_command: document.engine_command,
  verify: document.verify,
  mode: document.mode,
  max_iterations: document.max_iterations,
  max_wall_secs: document.max_wall_secs,
  budget_usd: document.budget_usd,
  repair_invokes: document.repair_invokes,
  transient_retries: document.transient_retries,
  keep_workspace_on_failure: document.keep_workspace_on_failure,
  keep_workspace_on_cancel: document.keep_workspace_on_cancel,
  labels: document.labels,
})

/**
 * What a session that goes on from an ended one starts with (spec/coder-session.md 9.4): from its delivered commit, or
 * from its retained work, which comes with its contract and the guidance that was given. Allowed only when nothing of
 * the old one runs any more. Shipping that was authorised for the old one is not authorised for this.
 */
export const continuation = (document: Document, request: ContinueSession): Continuation => {
  const { id, state, result_commit, checkpoint } = document
  if (!isTerminal(state) || !document.execution_stopped)
    throw refuse(`session ${id} can be continued when it has ended and stopped; it is ${state}`)
  const from = (base: string, legacy: Legacy, contract: Document['contract']): Continuation => ({
    start: startSessionSchema.parse({ ...before(document), contract, ...request, base }),
    legacy,
  })
  if (state === 'merged' && result_commit !== null)
    return from(result_commit, { ...noLegacy, resumed_from: id }, null)
  // One that ended before its worktree was made goes on from what it was to go on from itself.
  const start_commit = document.start_commit ?? (document.resumed_from && document.requested_base)
  if (document.retained_work && checkpoint !== null && start_commit !== null) {
    const { steering_messages, contract } = document
    const provenance = request.contract ? null : document.contract_provenance
    return from(start_commit, { resumed_from: id, steering_messages, checkpoint, provenance }, contract)
  }
  throw refuse(
    `session ${id} left neither a delivered commit nor retained work to go on from; keep_workspace_on_failure or keep_workspace_on_cancel would have kept it`,
  )
}
