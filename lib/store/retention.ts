import { objectKey } from './keys.ts'
import type { Platform } from './platform.ts'
import type { Finished } from './session-removals.ts'

/** What a team keeps of its finished sessions; 0 is no limit (spec/coder-session.md 8). */
export type Retention = { sessions: number; days: number }

const dayMs = 24 * 3600_000

/**
 * Which of these finished sessions are over the limit, oldest first: those that finished before the kept days, and those
 * with at least as many newer ones among them as are kept.
 */
export const overLimit = (
  finished: readonly Finished[],
  { sessions, days }: Retention,
  now: number,
): Finished[] =>
  finished
    .toSorted((a, b) => Date.parse(b.finished_at) - Date.parse(a.finished_at))
    .filter(
      ({ finished_at }, newer) =>
        (sessions > 0 && newer >= sessions) || (days > 0 && Date.parse(finished_at) < now - days * dayMs),
    )
    .reverse()

/**
 * At most `limit` sessions of a team that are over its limit, oldest first. Of a team with very many it looks at the
 * first only: what is over the limit among some is so among all, and the others come when these are gone.
 */
export const overRetention = async (
  { sessions, clock }: Pick<Platform, 'sessions' | 'clock'>,
  team: string,
  retention: Retention,
  limit: number,
): Promise<Finished[]> => {
  const finished = await sessions.finished(team, retention.sessions + limit)
  return overLimit(finished, retention, clock()).slice(0, limit)
}

type Parts = Pick<Platform, 'sessions' | 'blobs' | 'compute'>

/**
 * Goes on with a removal that was begun: first the session's objects, then what workers keep of it, last its row, so
 * that after a crash anywhere a repeat finds what is left. False when no removal of it was begun or it is done.
 */
export const finishRemoval = async (
  { sessions, blobs, compute }: Parts,
  id: { team: string; id: string },
): Promise<boolean> => {
  const going = await sessions.removing(id)
  if (!going) return false
  await blobs.removeAll(objectKey.session(id.team, id.id))
  if (going.repo !== null) await compute.forget({ repo: going.repo, session_id: id.id })
  await sessions.endRemoval(id)
  return true
}

/**
 * Removes a finished session with everything that belongs to it: journal, snapshots, bundles, artifacts, private refs.
 * False, with nothing changed, when it changed since it was seen or may not be removed. Whoever calls for it from the
 * first write on is told that there is no such session.
 */
export const removeSession = async (
  parts: Parts,
  session: Omit<Finished, 'finished_at'>,
): Promise<boolean> => {
  await parts.sessions.beginRemoval(session)
  return finishRemoval(parts, session)
}
