import { newId } from '../ids.ts'
import type { Actor } from '../journal/entry.ts'
import type { Fact } from '../journal/facts.ts'
import { limits } from '../limits.ts'
import { advance } from './advance.ts'
import { confirmAutomatically } from './decisions.ts'
import { fail } from './fail.ts'
import type { Change, SessionItem } from './item.ts'
import { mayIterate, rule } from './policy.ts'
import { isGateStep, type Step } from './states.ts'

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
    return {
      change: fail(parked, 'system', actor(step), { failure_kind: 'budget_exhausted', error: exhausted }),
      launch: null,
    }
  }
  const facts: Fact[] = opens
    ? [{ type: 'iteration_started', data: { n: document.iterations + 1, max: document.max_iterations } }]
    : []
  const alive = computeAlive(item, now)
  const at = new Date(now).toISOString()
  const compute = alive
    ? runtime.compute
    : { id: newId('wrk'), status: 'starting' as const, started_at: at, stopped_at: null }
  // A worker that is alive and at this very step goes on undisturbed when only the machine's token is new.
  const kept =
    alive && runtime.command?.step === step ? runtime.command : { id: newId('cmd'), step, issued_at: at }
  return {
    change: { actor: actor(step), facts, runtime: { task: { step, token }, command: kept, compute } },
    launch: alive ? null : (compute?.id ?? null),
  }
}

/** Parks a gate on its token, or goes through it where the mode needs nobody. */
export const enterGate = (item: SessionItem, step: Step, token: string): Change => {
  const parked = { ...item, runtime: { ...item.runtime, task: { step, token } } }
  if (step === 'Confirm' && !item.document.gate) return confirmAutomatically(parked)
  return { actor: actor(step), facts: [], runtime: { task: { step, token } } }
}

/** Plan: an external command plans for itself, so this only starts the run's one clock (spec/coder-session.md 8). */
export const plan = (item: SessionItem, now: number): Change =>
  advance(item, {
    trigger: 'planned',
    by: 'system',
    actor: actor('Plan'),
    note: '',
    facts: [
      {
        type: 'run_started',
        data: { deadline_at: new Date(now + item.document.max_wall_secs * 1000).toISOString() },
      },
    ],
  })

export const decide = (item: SessionItem, now: number): { change: Change; note: string } => {
  const ruling = rule(item.document, now)
  const gating = item.document.last_check_results.filter((result) => result.verdict !== 'captured')
  const verdict: Fact = {
    type: 'verdict_reached',
    data: {
      green: ruling.kind === 'accept',
      failed: gating.filter((r) => r.verdict === 'failed' || r.verdict === 'flaky').map((r) => r.name),
      not_run: gating.filter((r) => r.verdict === 'could_not_run').map((r) => r.name),
    },
  }
  if (ruling.kind === 'fail') {
    const { failure_kind, error } = ruling
    return { change: fail(item, 'system', actor('Decide'), { failure_kind, error }, [verdict]), note: error }
  }
  const accepted = ruling.kind === 'accept'
  const note = accepted ? `iteration ${item.document.iterations} green` : ruling.note
  return {
    change: advance(item, {
      trigger: accepted ? 'accepted' : 'repair',
      by: 'system',
      actor: actor('Decide'),
      note,
      facts: [verdict],
    }),
    note,
  }
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

/**
 * A step failed outside the work itself: its worker was lost, it timed out, or its handler threw. The step is run
 * again from the last checkpoint until the ceiling of infrastructure faults (spec/workflow-state.md C.3).
 */
export const recover = (item: SessionItem, fault: { step: Step; error: string; cause: string }): Change => {
  const { document, runtime } = item
  const count = document.infra_failures + 1
  const detail = `${fault.error}: ${fault.cause}`.slice(0, 500)
  const facts: Fact[] = [
    { type: 'infrastructure_fault', data: { step: fault.step, cause: fault.error, detail, count } },
  ]
  if (isGateStep(document.step) && fault.error === 'States.Timeout') {
    return fail(
      item,
      'system',
      actor(fault.step),
      { failure_kind: 'stalled', error: 'nobody answered before the gate’s deadline' },
      facts,
    )
  }
  if (count >= limits.infraFailures) {
    return fail(
      item,
      'system',
      actor(fault.step),
      { failure_kind: 'infrastructure', error: `${count} faults, the last at ${fault.step}: ${detail}` },
      facts,
    )
  }
  const change = advance(item, {
    trigger: 'recovered',
    by: 'system',
    actor: actor(fault.step),
    note: detail,
    facts,
  })
  const { compute } = runtime
  return {
    ...change,
    runtime: {
      ...change.runtime,
      // The machine has left the step whose token this was.
      answers: runtime.answers,
      compute: compute && compute.status !== 'stopped' ? { ...compute, status: 'stopping' } : compute,
    },
  }
}
