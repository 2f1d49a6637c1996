import { creation, type Legacy, noLegacy } from '../../lib/session/creation.ts'
import type { Change } from '../../lib/session/item.ts'
import type { StartSession } from '../../lib/session/start.ts'
import type { Platform } from '../../lib/store/platform.ts'
import { parseRepository } from '../../lib/workspace/repository-address.ts'
import { actorOf, type Person, requireRole } from './auth.ts'

/** The change that makes a session of a request, by a person who may ask for all that is in it. */
export const created = (
  platform: Platform,
  id: string,
  start: StartSession,
  who: Person,
  legacy: Legacy = noLegacy,
): Change => {
  // Whoever authorises shipping at the start gives the approval that a review would ask for.
  if (start.yes_ship) requireRole(who, 'approver')
  const { allowLocalRepositories: allowLocal } = platform.policy
  const repo = parseRepository(start.repo, { allowLocal }).url
  return creation({ id, team: who.team, repo }, start, actorOf(who), legacy)
}
