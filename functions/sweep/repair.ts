import type { SessionItem } from '../../lib/session/item.ts'
import { transition } from '../../lib/store/effects.ts'
import { finishRemoval } from '../../lib/store/retention.ts'
import { endLostWorker } from './compute.ts'
import { executionRuns } from './executions.ts'
import { expire, overslept } from './expiry.ts'
import { finishHalfDone } from './half-done.ts'
import { redrive } from './redrive.ts'
import { restoredBy, standsAtReview, takeUpReview } from './review.ts'
import { actor, type Id, type Round } from './round.ts'
import { tendSeal } from './sealing.ts'

/** What a session is looked at for: `due` when its time has come, `start` when the service has just begun. */
export type Look = 'due' | 'start' | 'suspect'

/** A review that outlived the service is shown to be what it was before anybody can approve it. */
const restoreReview = async ({ platform }: Round, found: SessionItem): Promise<void> => {
  const { item, proof } = await takeUpReview(platform, found)
  if (!proof || restoredBy(proof, item).length === 0) return
  await transition(platform, item, (now) => {
    const facts = restoredBy(proof, now)
    return facts.length > 0 ? { actor, facts } : null
  })
}

/** Repairs a session that is neither settled nor at rest; every part of it is a no-op where nothing is wrong. */
const repairLive = async (round: Round, found: SessionItem, look: Look): Promise<void> => {
  const { platform, now } = round
  await endLostWorker(round, found)
  const item = expire(found, now)
    ? await transition(platform, found, (current) => expire(current, now))
    : found
  if (!(await executionRuns(round, item))) return redrive(round, item)
  if (overslept(item, now)) await transition(platform, item, (current) => overslept(current, now))
  if (look === 'start' && standsAtReview(item)) await restoreReview(round, item)
}

/** What a look at a session's row found it to be; `sealed` when it was settled and its journal was seen to. */
export type Found = 'live' | 'settled' | 'sealed' | 'gone'

/**
 * Repairs one session: what was decided and not done, what expired, a worker that was lost, an execution that is gone.
 * One at rest has only the first, and a settled one has its journal sealed; one that is being removed is removed to the
 * end. Where nothing was wrong it is noted that a session which was due was looked at, so that the sweep comes to those
 * behind it.
 */
export const repair = async (round: Round, id: Id, look: Look): Promise<Found> => {
  const { platform, log } = round
  const found = await platform.sessions.get(id)
  if (!found) {
    const detail = 'finished a removal that had been begun'
    if (await finishRemoval(platform, id))
      log({ message: 'removed', team: id.team, id: id.id, what: 'removal', detail })
    return 'gone'
  }
  const item = await finishHalfDone(round, found)
  if (item.runtime.settled) {
    await endLostWorker(round, item)
    return (await tendSeal(round, item)) ? 'sealed' : 'settled'
  }
  if (item.runtime.resting) return 'live'
  await repairLive(round, item, look)
  if (look === 'due')
    await platform.sessions.update(id, ({ revision }) =>
      revision === found.revision ? { actor, facts: [], looked: true } : null,
    )
  return 'live'
}
