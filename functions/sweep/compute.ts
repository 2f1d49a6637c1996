import type { SessionItem } from '../../lib/session/item.ts'
import { computeStopped } from '../compute/stopped.ts'
import { each, inTurn, patienceMs, type Round, repaired, tell } from './round.ts'

/** Workers that are compared with their sessions in one round. */
const workersPerRound = 200

/** Whether a worker may still be on its way up: it is on the item before it is launched. */
const mayBeStarting = ({ now, startedAt }: Round, { runtime }: SessionItem): boolean => {
  if (runtime.compute?.status !== 'starting') return false
  const since = Date.parse(runtime.compute.started_at)
  return since >= (startedAt ?? 0) && now - since < patienceMs / 2
}

/** Why a worker that the item believes in is none any more; null when it is, or when there is none. */
const whyLost = async (round: Round, item: SessionItem): Promise<string | null> => {
  const { compute, lease } = item.runtime
  if (!compute || compute.status === 'stopped') return null
  if (lease.expires_at !== null && Date.parse(lease.expires_at) <= round.now) return 'its lease expired'
  if (mayBeStarting(round, item)) return null
  return (await round.platform.compute.running(compute.id)) ? null : 'it is gone'
}

/** Makes sure that a session's worker and what it started are gone, and records that they are. */
export const endWorker = async (
  { platform }: Round,
  { team, id, runtime }: SessionItem,
  reason: string,
): Promise<void> => {
  const { compute } = runtime
  if (!compute || compute.status === 'stopped') return
  await platform.compute.stop(compute.id)
  const told = repaired('lease', `worker ${compute.id} was given up: ${reason}`)
  await computeStopped(platform, { team, id, worker_id: compute.id, reason }, [told])
}

/** Ends what is left of a worker that has lost its lease or its process. */
export const endLostWorker = async (round: Round, item: SessionItem): Promise<void> => {
  const reason = await whyLost(round, item)
  if (reason !== null) await endWorker(round, item, reason)
}

type Worker = { id: string; team: string; session_id: string }

/** Why a worker that runs has nothing to do for a session; null when it has. */
export const whyIdle = (worker: Worker, item: SessionItem | null, now: number): string | null => {
  if (!item) return 'its session is not there'
  const { settled, resting, compute } = item.runtime
  if (settled) return 'its session has ended'
  if (resting) return 'its session rests'
  if (compute?.id !== worker.id) return 'its session has another worker'
  const stopped = compute.stopped_at === null ? null : Date.parse(compute.stopped_at)
  return stopped !== null && now - stopped >= patienceMs ? 'it was given up for stopped' : null
}

const endIdle = async (round: Round, worker: Worker): Promise<void> => {
  const id = { team: worker.team, id: worker.session_id }
  const reason = whyIdle(worker, await round.platform.sessions.get(id), round.now)
  if (reason === null) return
  await round.platform.compute.stop(worker.id)
  const detail = `worker ${worker.id} ran on: ${reason}`
  const item = await round.platform.sessions.get(id)
  const isItsOwn = item?.runtime.compute?.id === worker.id && item.runtime.compute.status !== 'stopped'
  if (isItsOwn)
    await computeStopped(round.platform, { ...id, worker_id: worker.id, reason }, [
      repaired('compute', detail),
    ])
  else await tell(round, id, 'compute', detail)
}

/** Ends the workers that outlived their session, or its need of them. */
export const endIdleWorkers = async (round: Round): Promise<void> => {
  const workers = await round.platform.compute.list()
  const some = inTurn(workers, workersPerRound, round.now)
  await each(
    round,
    some,
    ({ id }) => id,
    (worker) => endIdle(round, worker),
  )
}
