import { limits } from '../../lib/limits.ts'
import { overRetention, removeSession } from '../../lib/store/retention.ts'
import type { Due } from '../../lib/store/sessions.ts'
import { each, type Round } from './round.ts'

/** Sessions of one team that are removed in one round, and teams that are looked at for them. */
const removedPerRound = 50
const teamsPerRound = 10
/** A team is looked at for too many sessions this often; one with a session that is too old at once. */
const everyMs = 3_600_000

/** The teams to look at: those with sessions whose time is over, then those that were not looked at for longest. */
const chosen = ({ memory, now }: Round, overdue: ReadonlySet<string>): string[] => {
  const waiting = [...memory.teams].filter(([team, last]) => overdue.has(team) || now - last >= everyMs)
  const first = (team: string) => (overdue.has(team) ? 0 : 1)
  return waiting
    .toSorted(([a, lastOfA], [b, lastOfB]) => first(a) - first(b) || lastOfA - lastOfB)
    .slice(0, teamsPerRound)
    .map(([team]) => team)
}

const removeFrom = async (round: Round, team: string, overdue: readonly Due[]): Promise<void> => {
  const { platform, memory, now, log } = round
  const over = await overRetention(platform, team, limits.retention, removedPerRound)
  await each(
    round,
    over,
    ({ id }) => id,
    async (session) => {
      const detail = `finished at ${session.finished_at}, beyond what the team keeps`
      if (await removeSession(platform, session))
        log({ message: 'removed', team, id: session.id, what: 'removal', detail })
    },
  )
  if (over.length === removedPerRound) return
  memory.teams.set(team, now)
  // What its time brought here and may not go is looked at again later, and not in every round.
  for (const row of overdue) await platform.sessions.postpone(row, now + everyMs)
}

/**
 * Removes what teams have beyond their retention (spec/coder-session.md 8, 9.5), a few at a time. `overdue` are settled
 * sessions whose time has come; `teams` are all that have sessions now, and are remembered.
 */
export const retain = async (
  round: Round,
  teams: Iterable<string>,
  overdue: readonly Due[],
): Promise<void> => {
  for (const team of teams) if (!round.memory.teams.has(team)) round.memory.teams.set(team, 0)
  const some = chosen(round, new Set(overdue.map(({ team }) => team)))
  await each(
    round,
    some,
    (team) => team,
    (team) =>
      removeFrom(
        round,
        team,
        overdue.filter((row) => row.team === team),
      ),
  )
}
