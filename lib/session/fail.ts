import type { Actor } from '../journal/entry.ts'
import type { Fact } from '../journal/facts.ts'
import { visible } from '../text/visible.ts'
import { advance } from './advance.ts'
import type { Document, Gate } from './document.ts'
import { resolveGate } from './gates.ts'
import type { Change, SessionItem } from './item.ts'
import type { FailureKind } from './states.ts'

/** The event that a limit ended the run (spec/coder-session.md 8). */
export const budgetExhausted = (document: Document, reason: string, now: number): Fact => {
  const { deadline_at: deadline, max_wall_secs: wall, iterations } = document
  const started = deadline === null ? null : Date.parse(deadline) - wall * 1000
  const elapsed_secs = started === null ? null : Math.max(0, Math.round((now - started) / 1000))
  return { type: 'budget_exhausted', data: { reason, elapsed_secs, iterations } }
}

const expired = (gate: Gate | null, actor: Actor): Fact[] => resolveGate(gate, 'expire', actor)

/** The change that ends a session as failed, with its typed kind and a sentence for people; an open gate expires with it. */
export const fail = (
  item: SessionItem,
  by: 'worker' | 'system',
  actor: Actor,
  failure: { failure_kind: FailureKind; error: string },
  facts: readonly Fact[] = [],
): Change =>
  advance(item, {
    trigger: 'failed',
    by,
    actor,
    note: `${failure.failure_kind}: ${failure.error}`,
    facts: [
      ...facts,
      ...expired(item.document.gate, actor),
      { type: 'session_failed', data: { ...failure, error: visible(failure.error) } },
    ],
  })
