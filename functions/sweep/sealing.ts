import { limits } from '../../lib/limits.ts'
import { isUnsealed } from '../../lib/session/due.ts'
import type { Runtime, SessionItem } from '../../lib/session/item.ts'
import { clearSealed, seal } from '../../lib/store/sealing.ts'
import type { Due } from '../../lib/store/sessions.ts'
import type { Round } from './round.ts'

/** Sessions from before there were seals that are sealed in one round. */
const foundPerRound = 20

/** Whether nobody reads any more in the segments that a seal covers. */
const isClearable = ({ sealed }: Runtime, now: number): boolean =>
  sealed !== null && !sealed.cleared && now - Date.parse(sealed.sealed_at) >= limits.seal.graceMs

/** Seals a journal; of long ones, which take memory and time, one in a round. */
const sealInTurn = async (round: Round, item: SessionItem): Promise<void> => {
  if (item.journal_head.sequence >= limits.seal.atOnce.entries) {
    if (round.longSeal !== null) return
    round.longSeal = item.id
  }
  await seal(round.platform, item)
}

/**
 * Sees to the journal of a settled session: seals it where its last step did not come to that, and later removes the
 * segments that the seal covers. Whether there was anything to do.
 */
export const tendSeal = async (round: Round, item: SessionItem): Promise<boolean> => {
  const { platform, now } = round
  if (isUnsealed(item.runtime)) await sealInTurn(round, item)
  else if (isClearable(item.runtime, now)) await clearSealed(platform, item)
  else return false
  return true
}

/**
 * Settled sessions of some teams whose journals are not sealed and that no time brings up: those from before there were
 * seals. A team that has fewer than are taken at once is not looked at again.
 */
export const findUnsealed = async ({ platform, memory }: Round, teams: Iterable<string>): Promise<Due[]> => {
  const found: Due[] = []
  for (const team of teams) {
    if (memory.sealed.has(team)) continue
    if (found.length >= foundPerRound) break
    const some = await platform.sessions.unsealed(team, foundPerRound)
    if (some.length < foundPerRound) memory.sealed.add(team)
    found.push(...some)
  }
  return found
}
