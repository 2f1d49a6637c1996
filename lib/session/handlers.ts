import { newId } from '../ids.ts'
import type { Actor } from '../journal/entry.ts'
import type { Fact } from '../journal/facts.ts'
import { limits } from '../limits.ts'
import { advance } from './advance.ts'
import { startClock } from './clock.ts'
import { confirmAutomatically } from './contract-decisions.ts'
import { budgetExhausted, fail } from './fail.ts'
import type { Change, SessionItem } from './item.ts'
import { mayIterate } from './policy.ts'
import { approveByItself } from './review-decisions.ts'
import type { Step } from './states.ts'

const actor = (step: Step): Actor => ({ kind: 'system', id: step })

/** Whether a worker that was launched can still be expected to ask for its command. */
export const computeAlive = ({ runtime }: SessionItem, now: number): boolean => {
  const { compute, lease } = runtime
  if (!compute || compute.status === 'stopping' || compute.status === 'stopped') return false
  if (compute.status === 'starting')
    return now < Date.parse(compute.started_at) + limits.taskHeartbeatSecs * 1000
  return lease.expires_at !== null && now < Date.parse(lease.expires_at)
}

/** Puts a worker step's command in hand; `launch` names a worker to start when none is alive to take it. */
export const dispatch = (
  item: SessionItem,
  step: Step,
  token: string,
  now: number,
): { change: Change; launch: string | null } => {
  const { document, runtime } = item
  const opens = step === 'Code' && !document.iteration_open
  const exhausted = opens ? mayIterate(document, now) : null
  if (exhausted) {
    const parked = { ...item, runtime: { ...runtime, task: { step, token } } }
    const failure = { failure_kind: 'budget_exhausted', error: exhausted } as const
    const budget = budgetExhausted(document, exhausted, now)
    return { change: fail(parked, 'system', actor(step), failure, [budget]), launch: null }
  }
  const facts: Fact[] = opens
    ? [{ type: 'iteration_started', data: { n: document.iterations + 1, max: document.max_iterations } }]
    : []
  const alive = computeAlive(item, now)
  const replaced =
    alive || runtime.compute?.status === 'stopped' ? runtime.replaced : (runtime.compute?.id ?? null)
  const at = new Date(now).toISOString()
  const compute = alive
    ? runtime.compute
    : { id: newId('wrk'), status: 'starting' as const, started_at: at, stopped_at: null }
  // A worker that is alive and at this very step goes on undisturbed when only the machine's token is new.
  const kept =
    alive && runtime.command?.step === step ? runtime.command : { id: newId('cmd'), step, issued_at: at }
  return {
    change: {
      actor: actor(step),
      facts,
      runtime: { task: { step, token }, command: kept, compute, replaced },
    },
    launch: alive ? null : (compute?.id ?? null),
  }
}

/** Parks a gate or a wait on its token, or goes through a gate where nobody is needed. */
export const enterGate = (item: SessionItem, step: Step, token: string): Change => {
  const parked = { ...item, runtime: { ...item.runtime, task: { step, token } } }
  if (step === 'Confirm' && !item.document.gate) return confirmAutomatically(parked)
  const approved = step === 'Review' ? approveByItself(parked) : null
  if (approved) return approved
  const { compute } = item.runtime
  const leaving =
    compute && compute.status !== 'stopped' ? { ...compute, status: 'stopping' as const } : compute
  // Nothing runs while something else is waited for; a command that comes a moment later launches another worker.
  return { actor: actor(step), facts: [], runtime: { task: { step, token }, compute: leaving } }
}

/** Plan: an external command plans for itself, so this only starts the run's one clock (spec/coder-session.md 8). */
export const plan = (item: SessionItem, now: number): Change =>
  advance(item, {
    trigger: 'planned',
    by: 'system',
    actor: actor('Plan'),
    note: '',
    facts: [startClock(item.document, now)],
  })

/** A stopped session has nothing running any more; only a person sets it going again. */
export const rest = (): Change => ({
  actor: actor('Rest'),
  facts: [],
  runtime: { task: null, command: null, resting: true },
})

/** The end of a rate limit's wait: the run's clock, which stood still meanwhile, goes on with what was left of it. */
export const liftLimit = (item: SessionItem, now: number): Change => {
  const { deadline_at: deadline, rate_limit: limit } = item.document
  const waited = limit ? Math.max(0, now - Date.parse(limit.since)) : 0
  const deadline_at = deadline && new Date(Date.parse(deadline) + waited).toISOString()
  return advance(item, {
    trigger: 'limit_lifted',
    by: 'system',
    actor: actor('RateLimit'),
    note: `waited ${Math.round(waited / 1000)} s`,
    facts: [{ type: 'rate_limit_lifted', data: { deadline_at } }],
  })
}

/** The end of the machine's part: nothing is left running. */
export const settle = (item: SessionItem): Change => {
  const change = advance(item, {
    trigger: 'settled',
    by: 'system',
    actor: actor('Settle'),
    note: '',
    facts: [{ type: 'execution_stopped', data: { at_step: item.document.step } }],
  })
  return { ...change, runtime: { ...change.runtime, settled: true } }
}
