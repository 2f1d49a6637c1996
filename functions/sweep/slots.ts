import type { SessionItem } from '../../lib/session/item.ts'
import { steps } from '../../lib/session/states.ts'
import { promote } from '../../lib/store/queue.ts'
import { each, patienceMs, type Round, tell } from './round.ts'

/** Since when nothing runs for a session, and what it is doing instead; null when something runs. */
const idleSince = ({ document, runtime }: SessionItem): { since: string; why: string } | null => {
  if (runtime.settled) return { since: document.updated_at, why: 'its session has ended' }
  if (runtime.resting) return { since: document.updated_at, why: 'its session rests' }
  if (steps[document.step].kind === 'gate')
    return { since: document.gate?.opened_at ?? document.updated_at, why: 'its session waits for a person' }
  if (steps[document.step].kind === 'wait')
    return {
      since: document.rate_limit?.since ?? document.updated_at,
      why: 'its session waits for a rate limit',
    }
  return null
}

/** Why a slot is held for nothing; null when it is not, or is just about to be given back. */
export const whyFree = (item: SessionItem | null, now: number): string | null => {
  if (!item) return 'its session is not there'
  const idle = idleSince(item)
  return idle && now - Date.parse(idle.since) >= patienceMs ? idle.why : null
}

/** Gives back a team's slots that nothing runs on, and lets in those that wait. */
export const reconcileSlots = async (round: Round, team: string): Promise<void> => {
  const { platform, now } = round
  const slots = await platform.admission.slots(team)
  await each(
    round,
    slots,
    ({ session_id }) => session_id,
    async ({ session_id: id }) => {
      const why = whyFree(await platform.sessions.get({ team, id }), now)
      if (why === null) return
      await platform.admission.release(team, id)
      await tell(round, { team, id }, 'slot', `a slot was still held: ${why}`)
    },
  )
  await promote(platform, team)
}
