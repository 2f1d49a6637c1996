import { contractHash } from '../contract/hash.ts'
import type { Contract, Provenance } from '../contract/schema.ts'
import { validateContract } from '../contract/validate.ts'
import { resolveEngine } from '../engine/requested.ts'
import { GatehouseError } from '../errors.ts'
import type { Actor } from '../journal/entry.ts'
import type { Document } from './document.ts'
import type { Change } from './item.ts'
import { type StartSession, unavailableOptions } from './start.ts'

/** What a session takes over from the one that it continues; nothing for one that starts afresh. */
export type Legacy = Pick<Document, 'resumed_from' | 'steering_messages' | 'checkpoint'> & {
  /** Where the contract came from when it is the earlier session's: taking it over makes it no more to be trusted. */
  provenance: Provenance | null
}
export const noLegacy: Legacy = {
  resumed_from: null,
  steering_messages: [],
  checkpoint: null,
  provenance: null,
}

const requireAvailable = (start: StartSession) => {
  const missing = unavailableOptions(start)
  if (missing.length === 0) return
  const told = missing.map(({ message }) => message).join('; ')
  throw new GatehouseError('not_available', told, { errors: missing })
}

const requireValid = (contract: Contract | null) => {
  const errors = contract ? validateContract(contract, { provenance: 'operator_supplied' }) : []
  if (errors.length === 0) return
  const at = errors.map(({ path, message }) => ({ path: `contract.${path}`, message }))
  throw new GatehouseError('invalid_contract', 'the contract is not valid', { errors: at })
}

/**
 * The change that makes a new session; refuses what can't be honoured, before anything is written. `repo` is the
 * address as it was understood, `start` what was asked for.
 */
export const creation = (
  identity: { id: string; team: string; repo: string },
  start: StartSession,
  actor: Actor,
  legacy: Legacy = noLegacy,
): Change => {
  requireAvailable(start)
  requireValid(start.contract)
  const { engine, reason } = resolveEngine(start.engine, { engine_command: start.engine_command })
  const { contract } = start
  const { provenance, ...takenOver } = legacy
  return {
    actor,
    facts: [
      {
        type: 'session_created',
        data: {
          ...identity,
          intent: start.intent,
          requested_base: start.base,
          requested_engine: start.engine,
          engine,
          engine_command: start.engine_command,
          mode: start.mode,
          until: start.until,
          yes_ship: start.yes_ship ? { by: actor.id } : null,
          verify: start.verify,
          contract,
          contract_hash: contract && contractHash(contract),
          contract_provenance: contract && (provenance ?? 'operator_supplied'),
          max_iterations: start.max_iterations,
          repair_invokes: start.repair_invokes,
          transient_retries: start.transient_retries,
          max_wall_secs: start.max_wall_secs,
          budget_usd: start.budget_usd,
          keep_workspace_on_failure: start.keep_workspace_on_failure,
          keep_workspace_on_cancel: start.keep_workspace_on_cancel,
          delivery: { kind: 'branch', branch: null },
          labels: start.labels,
          requested_by: actor.id,
          ...takenOver,
        },
      },
      { type: 'engine_selected', data: { engine, reason } },
    ],
  }
}
