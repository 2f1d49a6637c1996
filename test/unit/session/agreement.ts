import { expect } from 'vitest'
import { isError } from '../../../lib/errors.ts'
import { newId } from '../../../lib/ids.ts'
import { confirm, revise } from '../../../lib/session/contract-decisions.ts'
import { answer, resume } from '../../../lib/session/controls.ts'
import { decideGate, type GateAction } from '../../../lib/session/gate-decisions.ts'
import { needsYou } from '../../../lib/session/gates.ts'
import type { SessionItem } from '../../../lib/session/item.ts'
import { mayIterate } from '../../../lib/session/policy.ts'
import { approve, reject, requestChanges } from '../../../lib/session/review-decisions.ts'
import { aContract, ada, epochMs } from '../../support/sessions.ts'

const refusals = [
  ...(['illegal_transition', 'already_decided', 'review_moved', 'contract_moved'] as const),
  'not_found',
] as const

/** Whether a decision is accepted; one that is refused for what is in it, and not for where the session is, throws on. */
const accepts = (decision: () => unknown): boolean => {
  try {
    decision()
    return true
  } catch (error) {
    if (isError(error, ...refusals)) return false
    throw error
  }
}

/** The ids that a caller would name, right or wrong. */
type Names = { hash: string; review: string; gate: string; question: string }

const accepted = (item: SessionItem, { hash, review, gate, question }: Names) => {
  const decide = (action: GateAction) => () =>
    decideGate(item, { gate_id: gate, action, note: null }, ada, epochMs)
  return {
    confirm: accepts(() => confirm(item, { contract_hash: hash, contract: null }, ada)),
    approve: accepts(() => approve(item, { review_id: review, comment: null }, ada)),
    reject: accepts(() => reject(item, { review_id: review, reason: 'no' }, ada)),
    changes: accepts(() => requestChanges(item, { review_id: review, text: 'more' }, ada, epochMs)),
    advance: accepts(decide('advance')),
    loop_back: accepts(decide('loop_back')),
    abort: accepts(decide('abort')),
    answer: accepts(() => answer(item, { request_id: question, text: 'that' }, ada)),
  }
}

/** What a person is told they are needed for is exactly what a call would accept, and it has to name the right thing. */
export const requireAgreement = (item: SessionItem): void => {
  const { document } = item
  const kind = needsYou(document)?.kind ?? null
  const right = {
    hash: document.contract_hash ?? 'none',
    review: document.review_identity?.review_id ?? 'none',
    gate: document.gate?.id ?? 'none',
    question: document.question?.request_id ?? 'none',
  }
  const more = mayIterate({ ...document, deadline_at: null }, epochMs) === null
  const runsAgain = more || document.iteration_open
  const interrupted = kind === 'validate' && document.gate?.cause === 'interrupted'
  const setup = document.gate?.cause === 'setup'
  const decidable = kind === 'preflight' || kind === 'validate'
  expect(accepted(item, right)).toEqual({
    confirm: kind === 'contract',
    approve: kind === 'approval',
    reject: kind === 'approval',
    changes: kind === 'approval' && more,
    advance: decidable && !setup && (!interrupted || runsAgain),
    loop_back: decidable && (kind === 'preflight' || setup || runsAgain),
    abort: decidable,
    answer: kind === 'question',
  })
  const wrong = { hash: 'x', review: newId('rev'), gate: newId('gate'), question: newId('req') }
  expect(Object.values(accepted(item, wrong))).not.toContain(true)
  expect(accepts(() => revise(item, aContract({ setup: ['make'] }), ada))).toBe(kind === 'contract')
  expect(accepts(() => resume(item, null, ada, epochMs))).toBe(document.stopped)
}
