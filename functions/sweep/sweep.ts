import type { Fact } from '../../lib/journal/facts.ts'
import { limits } from '../../lib/limits.ts'
import { fail } from '../../lib/session/fail.ts'
import type { Change, SessionItem } from '../../lib/session/item.ts'
import { isTerminal, steps } from '../../lib/session/states.ts'
import { carryOut, transition } from '../../lib/store/effects.ts'
import type { Platform } from '../../lib/store/platform.ts'
import { giveBackSlot, promote } from '../../lib/store/queue.ts'
import { computeStopped } from '../compute/stopped.ts'

type Id = { team: string; id: string }
const actor = { kind: 'system' as const, id: 'sweep' }

const gateExpired = (item: SessionItem, now: number): boolean =>
  item.document.gate !== null && Date.parse(item.document.gate.deadline_at) <= now

/** Why a worker that the item believes in is none any more; null when it is, or when there is none. */
const lostWorker = async (
  platform: Platform,
  { runtime }: SessionItem,
  now: number,
): Promise<string | null> => {
  const { compute, lease } = runtime
  if (!compute || compute.status === 'stopped') return null
  if (lease.expires_at !== null && Date.parse(lease.expires_at) <= now) return 'its lease expired'
  return (await platform.compute.running(compute.id)) ? null : 'it is gone'
}

/** Makes sure that a worker and what it started are gone, and records that they are. */
const endWorker = async (
  platform: Platform,
  { team, id, runtime }: SessionItem,
  reason: string,
): Promise<void> => {
  if (!runtime.compute || runtime.compute.status === 'stopped') return
  await platform.compute.stop(runtime.compute.id)
  await computeStopped(platform, { team, id, worker_id: runtime.compute.id, reason })
}

/** Whether the session is where it waits for a person or for a slot: an execution that ended there took nothing along. */
const onlyWaits = ({ document }: SessionItem): boolean => {
  const { kind } = steps[document.step]
  return kind === 'gate' || kind === 'admission'
}

/** An execution that ended in the middle of work is an infrastructure fault, under the ceiling that they all share. */
const executionLost = (item: SessionItem): Fact[] => {
  const { step, state, infra_failures } = item.document
  if (onlyWaits(item) || isTerminal(state)) return []
  const detail = `execution ${item.id}-${item.runtime.attempt} ended before the session did`
  const data = { step, cause: 'ExecutionLost', detail, count: infra_failures + 1 }
  return [{ type: 'infrastructure_fault', data }]
}

/** Whether one more execution is of no use: work that made no progress in many, or a Settle that never came through. */
const isHopeless = (item: SessionItem): boolean =>
  isTerminal(item.document.state)
    ? item.runtime.attempt > limits.infraFailures
    : !onlyWaits(item) && item.document.infra_failures + 1 >= limits.infraFailures

/** Starts a new execution where the last one ended without the session having ended. */
const redrive = (item: SessionItem): Change => {
  const { document, runtime } = item
  const attempt = runtime.attempt + 1
  return {
    actor,
    facts: [
      ...executionLost(item),
      { type: 'execution_started', data: { name: `${item.id}-${attempt}`, attempt, at_step: document.step } },
    ],
    runtime: { attempt, start_pending: true, execution_arn: null, task: null, answers: [] },
    looked: true,
  }
}

/** Ends what nothing can carry on any more: the machine gave up on it again and again. */
const giveUp = async (platform: Platform, item: SessionItem): Promise<void> => {
  await endWorker(platform, item, 'the session was given up')
  await transition(platform, item, (now): Change | null => {
    const { state, step, infra_failures } = now.document
    if (isTerminal(state)) return null
    const error = `${infra_failures + 1} faults, the last at ${step}: its execution ended before the session did`
    return fail(now, 'system', actor, { failure_kind: 'infrastructure', error }, executionLost(now))
  })
  // Nobody looks after a session once it says that it is settled.
  await giveBackSlot(platform, item.team, item.id)
  const settled = { task: null, command: null, answers: [], settled: true }
  await transition(platform, item, (now): Change | null =>
    now.runtime.settled ? null : { actor, facts: [], runtime: settled },
  )
}

/** Repairs one session; every part of it is a no-op where nothing is wrong. */
const repair = async (platform: Platform, id: Id): Promise<void> => {
  const found = await platform.sessions.get(id)
  if (!found) return
  const item = await carryOut(platform, found)
  if (item.runtime.settled) return
  const now = platform.clock()
  const lost = await lostWorker(platform, item, now)
  if (lost !== null) await endWorker(platform, item, lost)
  if (gateExpired(item, now)) {
    await transition(platform, id, (current) =>
      gateExpired(current, now) && !isTerminal(current.document.state)
        ? fail(current, 'system', actor, {
            failure_kind: 'stalled',
            error: 'nobody answered before the gate’s deadline',
          })
        : null,
    )
  }
  const arn = item.runtime.execution_arn
  if (arn !== null && (await platform.machine.status(arn)) !== 'RUNNING') {
    if (isHopeless(item)) return giveUp(platform, item)
    await transition(platform, id, (current) =>
      current.runtime.execution_arn === arn && !current.runtime.settled ? redrive(current) : null,
    )
    return
  }
  // Nothing was wrong: note that it was looked at, so that the sweep comes to those behind it.
  if (item.revision === found.revision)
    await platform.sessions.update(id, () => ({ actor, facts: [], looked: true }))
}

/** Gives back the slots of sessions that ended or never were. */
const reconcileSlots = async (platform: Platform, team: string): Promise<void> => {
  for (const id of await platform.admission.slots(team)) {
    const item = await platform.sessions.get({ team, id })
    if (!item || item.runtime.settled) await platform.admission.release(team, id)
  }
  await promote(platform, team)
}

/** One fault that the sweep met; it went on with the next session. */
export type SweepFault = { id: string; error: unknown }

/**
 * Repairs whatever a crash left half-done: undrained outboxes, unanswered tokens, executions not started or gone, leases
 * and gates that expired, slots without session. Looks at what is due, oldest first, or with `all` at every live session
 * (as after a restart). Bounded, and never blocked by one session that can't be repaired.
 */
export const sweep = async (
  platform: Platform,
  options: { all?: boolean; limit?: number } = {},
): Promise<{ looked: number; faults: SweepFault[] }> => {
  const ids = await platform.sessions.due(options.all ? null : platform.clock(), options.limit ?? 100)
  const faults: SweepFault[] = []
  const teams = new Set<string>()
  for (const id of ids) {
    teams.add(id.team)
    try {
      await repair(platform, id)
    } catch (error) {
      faults.push({ id: id.id, error })
    }
  }
  for (const team of teams) {
    try {
      await reconcileSlots(platform, team)
    } catch (error) {
      faults.push({ id: team, error })
    }
  }
  return { looked: ids.length, faults }
}
