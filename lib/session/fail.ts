import type { Actor } from '../journal/entry.ts'
import type { Fact } from '../journal/facts.ts'
import { advance } from './advance.ts'
import type { Change, SessionItem } from './item.ts'
import type { FailureKind } from './states.ts'

/** The change that ends a session as failed, with its typed kind and a sentence for people. */
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
    facts: [...facts, { type: 'session_failed', data: failure }],
  })
