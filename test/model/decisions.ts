import type { SessionItem } from '../../lib/session/item.ts'
import { aContract } from '../support/sessions.ts'
import { hasEnded, type Past } from './reference.ts'
import { pick } from './results.ts'

/** A call by which a person decides, its path below the session. */
export type Decision = { path: string; body: Record<string, unknown> }

const otherContract = (dice: number) => {
  const contract = aContract()
  return { ...contract, checks: contract.checks.map((check) => ({ ...check, command: `./run ${dice % 3}` })) }
}
const actions = ['advance', 'loop_back', 'abort'] as const

/** Decisions that name what is open now; none where nothing is. */
const fitting = ({ document }: SessionItem, dice: number): Decision[] => {
  const { gate, review_identity: review, contract_hash, question } = document
  const review_id = review?.review_id
  if (question?.status === 'pending')
    return [{ path: 'answer', body: { request_id: question.request_id, text: 'the first' } }]
  if (document.stopped) return [{ path: 'resume', body: {} }]
  switch (gate?.kind) {
    case 'contract':
      return [
        { path: 'contract/confirm', body: { contract_hash } },
        { path: 'contract/confirm', body: { contract_hash } },
        { path: 'contract/revise', body: { contract: otherContract(dice >> 3) } },
        { path: 'contract/confirm', body: { contract_hash, contract: otherContract(dice >> 3) } },
      ]
    case 'approval':
      return [
        { path: 'review/approve', body: { review_id } },
        { path: 'review/approve', body: { review_id } },
        { path: 'review/changes', body: { review_id, text: 'more' } },
        { path: 'review/reject', body: { review_id, reason: 'no' } },
      ]
    case 'preflight':
    case 'validate':
      return [{ path: 'gate', body: { gate_id: gate.id, action: pick(actions, dice >> 3) } }]
    case undefined:
      return []
  }
}

/** What a willing person would decide now; null where nothing is asked. */
export const fittingDecision = (item: SessionItem, dice: number): Decision | null => {
  const decisions = fitting(item, dice)
  return decisions[dice % Math.max(1, decisions.length)] ?? null
}

const unknown = '01hzzzzzzzzzzzzzzzzzzzzzzz'

/** A decision of the kind that is asked for, about something else: what was there before, or never. */
export const staleDecision = (item: SessionItem, past: Past, dice: number): Decision | null => {
  const decision = fittingDecision(item, dice)
  if (!decision) return null
  const { body, path } = decision
  const other = (member: string, known: ReadonlySet<string>, prefix: string): Decision => {
    const old = [...known].filter((id) => id !== body[member])
    return {
      path,
      body: { ...body, [member]: old[(dice >> 4) % Math.max(1, old.length)] ?? `${prefix}${unknown}` },
    }
  }
  if ('review_id' in body) return other('review_id', past.reviews, 'rev_')
  if ('gate_id' in body) return other('gate_id', past.gates, 'gate_')
  if ('request_id' in body) return other('request_id', past.questions, 'req_')
  return 'contract_hash' in body ? other('contract_hash', past.hashes, 'sha256:') : null
}

/** Any decision, fitting or not, with an id of now or of any time before. */
export const anyDecision = (item: SessionItem, past: Past, dice: number): Decision => {
  const { gate, review_identity, contract_hash, question } = item.document
  const named = (known: ReadonlySet<string>, now: string | undefined, never: string) =>
    now ?? [...known][(dice >> 4) % Math.max(1, known.size)] ?? never
  const review_id = named(past.reviews, review_identity?.review_id, `rev_${unknown}`)
  const hash = named(past.hashes, contract_hash ?? undefined, 'sha256:none')
  return pick<Decision>(
    [
      { path: 'contract/confirm', body: { contract_hash: hash } },
      { path: 'contract/revise', body: { contract: otherContract(dice >> 6) } },
      { path: 'review/approve', body: { review_id } },
      { path: 'review/changes', body: { review_id, text: 'again' } },
      { path: 'review/reject', body: { review_id, reason: 'no' } },
      {
        path: 'gate',
        body: { gate_id: named(past.gates, gate?.id, `gate_${unknown}`), action: pick(actions, dice >> 6) },
      },
      {
        path: 'answer',
        body: {
          request_id: named(past.questions, question?.request_id, `req_${unknown}`),
          text: 'the second',
        },
      },
      { path: 'resume', body: {} },
      { path: 'steer', body: { text: `hint ${dice % 5}` } },
    ],
    dice >> 2,
  )
}

/** Whether the work could be tried once more, time aside (spec/coder-session.md 8). */
const hasMore = ({ document: { iterations, max_iterations, budget_usd, usage } }: SessionItem): boolean =>
  iterations < max_iterations &&
  (budget_usd === null || usage.cost_usd === null || usage.cost_usd < budget_usd)

/** Whether a decision has to be accepted by a session as it is; the same that `needs_you` has to show. */
export const isDue = (item: SessionItem, { path, body }: Decision): boolean => {
  const { document } = item
  const { gate, review_identity: review, question } = document
  const atReview = gate?.kind === 'approval' && review?.review_id === body.review_id
  switch (path) {
    case 'contract/confirm':
      return gate?.kind === 'contract' && document.contract_hash === body.contract_hash
    case 'contract/revise':
      return gate?.kind === 'contract'
    case 'review/approve':
    case 'review/reject':
      return atReview
    case 'review/changes':
      return atReview && hasMore(item)
    case 'gate': {
      if (gate?.id !== body.gate_id) return false
      if (gate?.kind !== 'preflight' && gate?.kind !== 'validate') return false
      if (gate.cause === 'setup') return body.action !== 'advance'
      const letsThrough = body.action === 'advance' && gate.cause === 'red'
      return gate.kind === 'preflight' || body.action === 'abort' || letsThrough || hasMore(item)
    }
    case 'answer':
      return question?.request_id === body.request_id && question?.status === 'pending'
    case 'resume':
      return document.stopped && !hasEnded(document)
    case 'steer':
      return !hasEnded(document)
    default:
      throw new Error(`no decision ${path}`)
  }
}
