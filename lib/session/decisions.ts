import { contractHash } from '../contract/hash.ts'
import type { Contract } from '../contract/schema.ts'
import { validateContract } from '../contract/validate.ts'
import { GatehouseError } from '../errors.ts'
import type { Actor } from '../journal/entry.ts'
import type { Fact } from '../journal/facts.ts'
import { limits } from '../limits.ts'
import { advance } from './advance.ts'
import type { Gate } from './document.ts'
import type { Change, SessionItem } from './item.ts'
import { mayIterate } from './policy.ts'
import { isTerminal } from './states.ts'

type GateAction = Extract<Fact, { type: 'gate_resolved' }>['data']['action']

const resolved = (
  gate: Gate | null,
  action: GateAction,
  actor: Actor,
  comment: string | null = null,
): Fact[] =>
  gate ? [{ type: 'gate_resolved', data: { gate_id: gate.id, action, by: actor.id, comment } }] : []

/** The open gate of the wanted kind. Throws `already_decided` when the session is past it, `illegal_transition` before it. */
const requireGate = (item: SessionItem, kind: Gate['kind']): Gate => {
  const { document } = item
  if (document.gate?.kind === kind) return document.gate
  const past =
    isTerminal(document.state) ||
    (kind === 'contract'
      ? document.contract_hash !== null && document.deadline_at !== null
      : document.review_identity !== null)
  throw new GatehouseError(
    past || document.state === 'contract_confirmed' ? 'already_decided' : 'illegal_transition',
    `session ${document.id} waits for no ${kind} decision: it is ${document.state} at step ${document.step}`,
  )
}

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
    warnings: [],
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
      ...resolved(gate, 'confirm', actor),
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
 * description alone is no revision (spec/coder-session.md 5.5).
 */
export const revise = (item: SessionItem, contract: Contract, actor: Actor): Change | null => {
  const gate = requireGate(item, 'contract')
  requireValid(contract)
  const before = item.document.contract
  const rules = (of: Contract) => contractHash({ ...of, description: '' })
  if (before && rules(before) === rules(contract)) return null
  return advance(item, {
    trigger: 'contract_revised',
    by: 'operator',
    actor,
    note: `revised by ${actor.id}`,
    facts: [...resolved(gate, 'revise', actor), proposed(contract)],
  })
}

const requireReview = (item: SessionItem, reviewId: string): Gate => {
  const gate = requireGate(item, 'approval')
  const identity = item.document.review_identity
  if (identity?.review_id !== reviewId || identity.contract_hash !== item.document.contract_hash) {
    throw new GatehouseError('review_moved', `the review is now ${identity?.review_id ?? 'not there'}`)
  }
  return gate
}

/** Approves exactly the review named (DESIGN 3, invariant 7): a change goes to delivery, a finding ends as reported. */
export const approve = (
  item: SessionItem,
  request: { review_id: string; comment: string | null },
  actor: Actor,
): Change => {
  const gate = requireReview(item, request.review_id)
  const facts = resolved(gate, 'approve', actor, request.comment)
  if (item.document.review_identity?.kind === 'finding') {
    return advance(item, {
      trigger: 'finding_accepted',
      by: 'approver',
      actor,
      note: `finding accepted by ${actor.id}`,
      facts: [...facts, { type: 'finding_resolved', data: { accepted: true, comment: request.comment } }],
    })
  }
  return advance(item, { trigger: 'approved', by: 'approver', actor, note: `approved by ${actor.id}`, facts })
}

export const reject = (
  item: SessionItem,
  request: { review_id: string; reason: string },
  actor: Actor,
): Change => {
  const gate = requireReview(item, request.review_id)
  const finding: Fact[] =
    item.document.review_identity?.kind === 'finding'
      ? [{ type: 'finding_resolved', data: { accepted: false, comment: request.reason } }]
      : []
  return advance(item, {
    trigger: 'rejected',
    by: 'approver',
    actor,
    note: `rejected by ${actor.id}`,
    facts: [
      ...resolved(gate, 'reject', actor, request.reason),
      ...finding,
      { type: 'session_cancelled', data: { reason: request.reason, by: actor.id } },
    ],
  })
}

/** Sends the work back with guidance; the clock of the run starts anew, the total of iterations doesn't. */
export const requestChanges = (
  item: SessionItem,
  request: { review_id: string; text: string },
  actor: Actor,
  now: number,
): Change => {
  const gate = requireReview(item, request.review_id)
  const { document } = item
  const guidance = [...document.steering_messages, request.text]
  if (Buffer.byteLength(guidance.join('')) > limits.guidance) {
    const message = `all guidance of a session may hold ${limits.guidance} bytes`
    throw new GatehouseError('invalid_request', message, { errors: [{ path: 'text', message }] })
  }
  const used = mayIterate({ ...document, deadline_at: null }, now)
  if (used) throw new GatehouseError('illegal_transition', `no changes can be asked for: ${used}`)
  const deadline = new Date(now + document.max_wall_secs * 1000).toISOString()
  return advance(item, {
    trigger: 'changes_requested',
    by: 'approver',
    actor,
    note: `changes requested by ${actor.id}`,
    facts: [
      ...resolved(gate, 'changes', actor, request.text),
      { type: 'operator_guidance', data: { text: request.text, status: 'accepted', by: actor.id } },
      { type: 'run_started', data: { deadline_at: deadline } },
    ],
  })
}

/** Cancels in any state that has not ended; null when it has, for a second cancel is no error. */
export const cancel = (item: SessionItem, reason: string | null, actor: Actor): Change | null => {
  if (isTerminal(item.document.state)) return null
  return advance(item, {
    trigger: 'cancelled',
    by: 'operator',
    actor,
    note: `cancelled by ${actor.id}`,
    facts: [
      ...resolved(item.document.gate, 'cancel', actor, reason),
      { type: 'session_cancelled', data: { reason, by: actor.id } },
    ],
  })
}
