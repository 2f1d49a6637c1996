import { summarise } from '../contract/summary.ts'
import type { Actor } from '../journal/entry.ts'
import type { Fact } from '../journal/facts.ts'
import { advance } from './advance.ts'
import type { Document } from './document.ts'
import { budgetExhausted, fail } from './fail.ts'
import { openGate } from './gates.ts'
import type { Change, SessionItem } from './item.ts'
import type { Trigger } from './lifecycle.ts'
import { type Ruling, rule } from './policy.ts'

const actor: Actor = { kind: 'system', id: 'Decide' }

const verdict = ({ document }: SessionItem, ruling: Ruling): Fact => {
  const { failed, notRun } = summarise(document.last_check_results)
  const { layer, counted, reason, kind } = ruling
  return {
    type: 'verdict_reached',
    data: { green: kind === 'accept', failed, not_run: notRun, decided_by_layer: layer, reason, counted },
  }
}

/** The fault of the engine that was one too many. */
const lastFault = ({ last_turn: turn }: Document, detail: string, count: number): Fact => ({
  type: 'infrastructure_fault',
  data: { step: 'Code', cause: turn?.status ?? 'unknown', detail, count },
})

type Move = { trigger: Trigger; facts: Fact[]; after?: Fact[] }

/** The move that a ruling leads to; what a failure leads to is told apart. */
const moveOf = ({ document }: SessionItem, ruling: Exclude<Ruling, { kind: 'fail' }>, now: number): Move => {
  const { reason } = ruling
  switch (ruling.kind) {
    case 'accept':
      return { trigger: 'accepted', facts: [] }
    case 'repair':
      return { trigger: 'repair', facts: [] }
    case 'retry': {
      const { retries_remaining, retries_used, infra_failures } = ruling
      const hypothesis = document.iterations
      const data = { hypothesis, reason, retries_remaining, retries_used, infra_failures }
      return { trigger: 'retried', facts: [{ type: 'invocation_retried', data }] }
    }
    case 'wait': {
      const { reset_at, infra_failures } = ruling
      return {
        trigger: 'rate_limited',
        facts: [{ type: 'rate_limited', data: { reset_at, reason, infra_failures } }],
      }
    }
    case 'ask':
      return {
        trigger: 'validate_gated',
        facts: [],
        after: [openGate('validate', now, { context: reason, cause: 'red', unexpected: !ruling.counted })],
      }
  }
}

/** Decides what follows the last evaluation, by `rule` alone. */
export const decide = (item: SessionItem, now: number): { change: Change; note: string } => {
  const ruling = rule(item.document, now)
  const { reason: note } = ruling
  const facts = [verdict(item, ruling)]
  if (ruling.kind === 'fail') {
    const { failure_kind, infra_failures: count } = ruling
    if (count !== undefined) facts.push(lastFault(item.document, note, count))
    // Nobody waits for the sign-in: it has to be made good before the session is continued.
    if (failure_kind === 'auth_required')
      facts.push({ type: 'auth_required', data: { message: note, wait_secs: null } })
    // A limit of the run is told as one, also where it left work that was judged red.
    const used = item.document.iterations >= item.document.max_iterations
    if (failure_kind === 'budget_exhausted' || used) facts.push(budgetExhausted(item.document, note, now))
    return { change: fail(item, 'system', actor, { failure_kind, error: note }, facts), note }
  }
  const move = moveOf(item, ruling, now)
  const { trigger, after = [] } = move
  const how = { trigger, by: 'system' as const, actor, note, facts: [...facts, ...move.facts], after }
  return { change: advance(item, how), note }
}
