import { newId } from '../ids.ts'
import type { Fact } from '../journal/facts.ts'
import { limits } from '../limits.ts'
import type { Document } from './document.ts'

/** What a session needs from a person; exactly what a decision call would accept now (one function, one truth). */
export type NeedsYou = { kind: 'contract' | 'approval'; label: string; gate_id: string } | null

export const needsYou = (document: Document): NeedsYou =>
  document.gate && { kind: document.gate.kind, label: document.gate.label, gate_id: document.gate.id }

const labels = {
  contract: 'Confirm or revise the contract',
  approval: 'Review what would be delivered',
} as const

/** The fact that opens a gate; its id binds the one answer, so an old answer can't reach a later gate. */
export const openGate = (kind: 'contract' | 'approval', now: number): Fact => ({
  type: 'gate_opened',
  data: {
    id: newId('gate'),
    kind,
    label: labels[kind],
    opened_at: new Date(now).toISOString(),
    deadline_at: new Date(now + limits.gateMs).toISOString(),
  },
})
