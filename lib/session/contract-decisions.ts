import { contractHash } from '../contract/hash.ts'
import type { Contract } from '../contract/schema.ts'
import { contractWarnings, validateContract } from '../contract/validate.ts'
import { GatehouseError } from '../errors.ts'
import type { Actor } from '../journal/entry.ts'
import type { Fact } from '../journal/facts.ts'
import { advance } from './advance.ts'
import { requireGate, resolveGate } from './gates.ts'
import type { Change, SessionItem } from './item.ts'

const requireValid = (contract: Contract) => {
  const errors = validateContract(contract, { provenance: 'operator_supplied' })
  if (errors.length > 0) throw new GatehouseError('invalid_contract', 'the contract is not valid', { errors })
}

const requireHash = (item: SessionItem, hash: string) => {
  if (item.document.contract_hash !== hash) {
    throw new GatehouseError('contract_moved', `the contract is now ${item.document.contract_hash}`)
  }
}

const proposed = (contract: Contract): Fact => ({
  type: 'contract_proposed',
  data: {
    contract,
    contract_hash: contractHash(contract),
    provenance: 'operator_supplied',
    sources: [],
    warnings: contractWarnings(contract),
  },
})

/** A person confirms the contract they name by its hash; an edited one may come with it (spec/coder-session.md 5.7). */
export const confirm = (
  item: SessionItem,
  request: { contract_hash: string; contract: Contract | null },
  actor: Actor,
): Change => {
  const gate = requireGate(item, 'contract')
  requireHash(item, request.contract_hash)
  if (request.contract) requireValid(request.contract)
  if (request.contract?.checks.some((check) => check.baseline)) {
    const message =
      'has a capture check, which is measured on the untouched tree: revise the contract instead'
    throw new GatehouseError('invalid_contract', message, { errors: [{ path: 'contract.checks', message }] })
  }
  const contract = request.contract ?? item.document.contract
  if (!contract) throw new GatehouseError('illegal_transition', 'there is no contract to confirm')
  return advance(item, {
    trigger: 'contract_confirmed',
    by: 'approver',
    actor,
    note: `confirmed by ${actor.id}`,
    facts: [
      ...resolveGate(gate, 'confirm', actor),
      {
        type: 'contract_confirmed',
        data: { contract, contract_hash: contractHash(contract), provenance: 'human_confirmed' },
      },
    ],
  })
}

/** Mode auto confirms by itself; the contract's provenance stays what it was. */
export const confirmAutomatically = (item: SessionItem): Change => {
  const { contract, contract_hash: hash, contract_provenance: provenance } = item.document
  if (!contract || !hash || !provenance)
    throw new GatehouseError('illegal_transition', 'there is no contract to confirm')
  return advance(item, {
    trigger: 'contract_confirmed',
    by: 'system',
    actor: { kind: 'system', id: 'Confirm' },
    note: 'confirmed by mode auto',
    facts: [{ type: 'contract_confirmed', data: { contract, contract_hash: hash, provenance } }],
  })
}

/**
 * Replaces the proposed contract, whose baseline is then measured anew. Null when the checks did not change: a new
 * description alone is no revision (spec/coder-session.md 5.5). Where a check could not run on the untouched tree, the
 * same contract has it measured again.
 */
export const revise = (item: SessionItem, contract: Contract, actor: Actor): Change | null => {
  const gate = requireGate(item, 'contract')
  requireValid(contract)
  const before = item.document.contract
  const rules = (of: Contract) => contractHash({ ...of, description: '' })
  const measured = item.document.baseline.every(({ verdict }) => verdict !== 'could_not_run')
  if (measured && before && rules(before) === rules(contract)) return null
  return advance(item, {
    trigger: 'contract_revised',
    by: 'operator',
    actor,
    note: `revised by ${actor.id}`,
    facts: [...resolveGate(gate, 'revise', actor), proposed(contract)],
  })
}
