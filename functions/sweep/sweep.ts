import type { Platform } from '../../lib/store/platform.ts'
import type { Due } from '../../lib/store/sessions.ts'
import { endIdleWorkers } from './compute.ts'
import { endUnwantedExecutions, listRunning, sessionsOf } from './executions.ts'
import { isLeftAlone, putOff, succeeded } from './poison.ts'
import { type Found, type Look, repair } from './repair.ts'
import { retain } from './retention.ts'
import {
  each,
  inTurn,
  newMemory,
  type Round,
  type SweepFault,
  type SweepLine,
  type SweepMemory,
} from './round.ts'
import { findUnsealed } from './sealing.ts'
import { reconcileSlots } from './slots.ts'

/** Live sessions are looked at within this time of their last look; what is due later only waits for retention. */
const horizonMs = 3_600_000 + 60_000
/** The most keys of sessions that a round reads; at a start, when all are looked at, of one machine. */
const keysPerRound = { due: 20_000, start: 200_000 } as const
/** Sessions that are repaired in one round because they are due, and because their execution was not in the list. */
const repairsPerRound = 500
const suspectsPerRound = 200

export type SweepOptions = {
  /** Looks at every live session and not only at those that are due, as at the start of a service. */
  all?: boolean
  /** When this service began, in epoch milliseconds; workers that it launched before that and that do not run are gone. */
  startedAt?: number
  /** The service before was stopped in order: what it ended on its way is no fault. */
  planned?: boolean
  /** The most sessions that are repaired because they are due. */
  limit?: number
  memory?: SweepMemory
  log?: (line: SweepLine) => void
  /** Asked before each part; false ends the round early. */
  hasTime?: () => boolean
}

const begin = async (platform: Platform, options: SweepOptions): Promise<Round> => {
  const faults: SweepFault[] = []
  const running = await listRunning(platform).catch((error: unknown) => {
    faults.push({ id: 'executions', error })
    return null
  })
  return {
    platform,
    faults,
    running,
    now: platform.clock(),
    startedAt: options.startedAt ?? null,
    planned: options.planned ?? false,
    memory: options.memory ?? newMemory(),
    longSeal: null,
    log: options.log ?? (() => {}),
    hasTime: options.hasTime ?? (() => true),
  }
}

/** Looks at sessions; returns the settled ones among them. One that can't be repaired is put off. */
const lookAt = async (round: Round, rows: readonly Due[], look: Look): Promise<Due[]> => {
  const settled: Due[] = []
  await each(
    round,
    rows,
    ({ id }) => id,
    async (row) => {
      let found: Found
      try {
        found = await repair(round, row, look)
      } catch (error) {
        await putOff(round, row)
        throw error
      }
      succeeded(round, row)
      if (found === 'settled') settled.push(row)
    },
  )
  return settled
}

/** Live sessions that are not due, and of which no execution is in the list: each is looked up, and most are all right. */
const withoutExecution = ({ running, now }: Round, later: readonly Due[]): Due[] => {
  if (!running) return []
  const carried = sessionsOf(running)
  return inTurn(
    later.filter(({ id }) => !carried.has(id)),
    suspectsPerRound,
    now,
  )
}

const part = async (round: Round, name: string, run: () => Promise<void>): Promise<void> => {
  if (!round.hasTime()) return
  await run().catch((error: unknown) => round.faults.push({ id: name, error }))
}

/**
 * Repairs whatever a crash left half-done (DESIGN 1): outboxes and answers, what expired, executions and workers without
 * session and sessions without them, slots held for nothing, removals; sees to journals that are to be sealed; and
 * removes what is beyond retention. Looks at what is due, oldest first. Bounded in each part, and never blocked by one
 * session that can't be repaired.
 *
 * Whether executions run is told by their list, a call for a thousand, and not by a call for each session: so a stopped
 * one is noticed in the next round, also of a session that nobody would look at for an hour.
 */
export const sweep = async (
  platform: Platform,
  options: SweepOptions = {},
): Promise<{ looked: number; faults: SweepFault[] }> => {
  const { all = false, limit = repairsPerRound } = options
  const keys = all ? keysPerRound.start : keysPerRound.due
  // Before the executions are listed: a session that began in between would look as if it had none.
  const rows = await platform.sessions.due(platform.clock() + horizonMs, keys)
  const round = await begin(platform, options)
  const dueBy = new Date(round.now).toISOString()
  const isDue = ({ due_at }: Due) => due_at <= dueBy
  const open = rows.filter((row) => !isLeftAlone(round, row))

  const chosen = all ? open : open.filter(isDue).slice(0, limit)
  const settled = await lookAt(round, chosen, all ? 'start' : 'due')
  const later = all
    ? []
    : withoutExecution(
        round,
        open.filter((row) => !isDue(row)),
      )
  settled.push(...(await lookAt(round, later, 'suspect')))

  const teams = new Set(chosen.map(({ team }) => team))
  await each(
    round,
    [...teams],
    (team) => team,
    (team) => reconcileSlots(round, team),
  )
  const live = new Set(rows.map(({ id }) => id))
  await part(round, 'executions', () => endUnwantedExecutions(round, live))
  await part(round, 'compute', () => endIdleWorkers(round))
  const known = new Set(rows.map(({ team }) => team))
  await part(round, 'seals', async () => {
    const old = await findUnsealed(round, known)
    await lookAt(
      round,
      old.filter((row) => !isLeftAlone(round, row)),
      'suspect',
    )
  })
  await part(round, 'retention', () => retain(round, known, settled.filter(isDue)))
  return { looked: chosen.length + later.length, faults: round.faults }
}
