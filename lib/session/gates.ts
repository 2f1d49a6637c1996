import { GatehouseError } from '../errors.ts'
import { newId } from '../ids.ts'
import type { Actor } from '../journal/entry.ts'
import type { Fact } from '../journal/facts.ts'
import { limits } from '../limits.ts'
import { ellipsised } from '../text/shorten.ts'
import { oneLine } from '../text/visible.ts'
import type { Document, Gate } from './document.ts'
import type { SessionItem } from './item.ts'
import { isTerminal } from './states.ts'

/** What a session needs from a person; exactly what a call would accept now (one function, one truth). */
export type NeedsYou =
  | { kind: Gate['kind']; label: string; gate_id: string; context: string }
  | { kind: 'question'; label: string; request_id: string; context: string }
  | null

export const needsYou = ({ gate, question }: Document): NeedsYou => {
  if (gate) return { kind: gate.kind, label: gate.label, gate_id: gate.id, context: gate.context }
  if (question?.status !== 'pending') return null
  const { request_id, prompt } = question
  return { kind: 'question', label: 'Answer the engine’s question', request_id, context: shown(prompt) }
}

const labels: Record<Gate['kind'], string> = {
  contract: 'Confirm or revise the contract',
  approval: 'Review what would be delivered',
  preflight: 'Decide on a session that could not start',
  validate: 'Decide on work that does not get through',
}

/** Text for a person at a gate: a line without hidden characters, and no more than fits a notification (spec/workflow-state.md C.8). */
export const shown = (text: string): string => ellipsised(oneLine(text), limits.gateContext)

/** The fact that opens a gate; its id binds the one answer, so an old answer can't reach a later gate. */
export const openGate = (
  kind: Gate['kind'],
  now: number,
  why: { context?: string; cause?: Gate['cause']; unexpected?: boolean; problem?: string | null } = {},
): Fact => ({
  type: 'gate_opened',
  data: {
    id: newId('gate'),
    kind,
    label: why.problem ? shown(`${labels[kind]}: ${why.problem}`) : labels[kind],
    context: shown(why.context ?? ''),
    cause: why.cause ?? 'road',
    unexpected: why.unexpected ?? false,
    opened_at: new Date(now).toISOString(),
    deadline_at: new Date(now + limits.gateMs).toISOString(),
  },
})

/** Texts as one after another, each ended once. */
export const sentences = (texts: readonly string[]): string =>
  texts.length === 1 ? (texts[0] ?? '') : texts.map((text) => text.replace(/[.\s]*$/, '.')).join(' ')

/** What a gate says, with what there is to know of where the work comes from. */
export const withWarnings = (note: string, { source_warnings }: Pick<Document, 'source_warnings'>): string =>
  sentences([note, ...source_warnings])

/** What is up for review, in a line: the commit, how much it changes, and what of it is red. */
export const reviewContext = ({
  review_identity: review,
  review_stat: stat,
  review_disclosed: disclosed,
  accepted_red,
  source_warnings,
}: Pick<
  Document,
  'review_identity' | 'review_stat' | 'review_disclosed' | 'accepted_red' | 'source_warnings'
>): string => {
  if (!review || !stat) return ''
  const red = accepted_red.length > 0 ? `; red: ${accepted_red.join(', ')}` : ''
  const told = disclosed.length > 0 ? `; disclosed: ${disclosed.join(', ').replaceAll('_', ' ')}` : ''
  const files = `${stat.files} ${stat.files === 1 ? 'file' : 'files'}`
  return withWarnings(`${review.kind} ${review.commit.slice(0, 12)}: ${files}${red}${told}`, {
    source_warnings,
  })
}

type GateAction = Extract<Fact, { type: 'gate_resolved' }>['data']['action']

/** The fact that a gate was decided; none where no gate is open. */
export const resolveGate = (
  gate: Gate | null,
  action: GateAction,
  actor: Actor,
  comment: string | null = null,
  automatic = false,
): Fact[] =>
  gate
    ? [{ type: 'gate_resolved', data: { gate_id: gate.id, action, by: actor.id, comment, automatic } }]
    : []

/** Whether a session is past the decision of a kind, so that a late caller is told so and not that it is too early. */
const isPast = (
  { state, stopped, deadline_at, contract_hash, review_identity }: Document,
  kind: 'contract' | 'approval',
) => {
  if (isTerminal(state)) return true
  // At rest a review may be there, and its gate is still to open.
  if (kind === 'approval') return review_identity !== null && !stopped
  return state === 'contract_confirmed' || (contract_hash !== null && deadline_at !== null)
}

/** The open gate of the wanted kind. Throws `already_decided` when the session is past it, `illegal_transition` before it. */
export const requireGate = ({ document }: SessionItem, kind: 'contract' | 'approval'): Gate => {
  if (document.gate?.kind === kind) return document.gate
  throw new GatehouseError(
    isPast(document, kind) ? 'already_decided' : 'illegal_transition',
    `session ${document.id} waits for no ${kind} decision: it is ${document.state} at step ${document.step}`,
  )
}
