import type { Fact } from '../../lib/journal/facts.ts'
import { transition } from '../../lib/store/effects.ts'
import type { RunningExecution } from '../../lib/store/machine.ts'
import type { Platform } from '../../lib/store/platform.ts'

export type Id = { team: string; id: string }

/** In whose name the sweep writes. */
export const actor = { kind: 'system' as const, id: 'sweep' }

/** What of a session was found half-done or left over. */
export type Repair =
  | 'outbox'
  | 'answer'
  | 'start'
  | 'gate'
  | 'question'
  | 'lease'
  | 'rate_limit'
  | 'execution'
  | 'slot'
  | 'compute'
  | 'removal'

/** One fault that the sweep met at a session, a team or a worker; it went on with the next. */
export type SweepFault = { id: string; error: unknown }

/** A repair or a removal that no journal can tell of, because its session is gone. */
export type SweepLine = { message: string; what: Repair; detail: string } & Id

/** What one process remembers from round to round. Losing it costs looks and nothing else. */
export type SweepMemory = {
  /** Sessions whose repair failed, by id: how often in a row, and before when they are not tried again. */
  failing: Map<string, { times: number; until: number }>
  /** When a team was last looked at for what is over its retention. */
  teams: Map<string, number>
  /** Teams whose sessions from before there were seals have all been looked at. */
  sealed: Set<string>
}
export const newMemory = (): SweepMemory => ({ failing: new Map(), teams: new Map(), sealed: new Set() })

/** One round of the sweep: what it began with, and what it met. Times are epoch milliseconds. */
export type Round = {
  platform: Platform
  now: number
  /** When this service began, if it is a look right after that: what it says to have launched before can be gone. */
  startedAt: number | null
  /** The service was stopped in order before this start, so that what ended with it is nobody's fault. */
  planned: boolean
  /** The executions that were running when the round began, by name; null when that could not be told of all. */
  running: ReadonlyMap<string, RunningExecution> | null
  memory: SweepMemory
  /** The session whose long journal is sealed in this round. */
  longSeal: string | null
  faults: SweepFault[]
  log: (line: SweepLine) => void
  hasTime: () => boolean
}

/** How long something may be half-done, or outlive its session, before it is taken for left behind. */
export const patienceMs = 60_000

/** The event that tells of a repair. */
export const repaired = (what: Repair, detail: string): Fact => ({
  type: 'repaired',
  data: { what, detail },
})

/** Tells of a repair that was made beside the session's item: in its journal, or on the log when it has none any more. */
export const tell = async (round: Round, id: Id, what: Repair, detail: string): Promise<void> => {
  const { platform, log } = round
  if (await platform.sessions.get(id))
    await transition(platform, id, () => ({ actor, facts: [repaired(what, detail)] }))
  else log({ message: 'repaired', team: id.team, id: id.id, what, detail })
}

/** How many are looked after at once: one that has to be waited for must not hold back the others. */
const atOnce = 4

/** Does the same for each, in order; a fault is kept, and begins no more once the time is up. */
export const each = async <Item>(
  round: Round,
  items: readonly Item[],
  nameOf: (item: Item) => string,
  one: (item: Item) => Promise<void>,
): Promise<void> => {
  const queue = items.values()
  const run = async () => {
    for (const item of queue) {
      if (!round.hasTime()) return
      try {
        await one(item)
      } catch (error) {
        round.faults.push({ id: nameOf(item), error })
      }
    }
  }
  await Promise.all(Array.from({ length: atOnce }, run))
}

/** At most `limit` of the items; of more, the next ones at each minute, so that all have their turn. */
export const inTurn = <Item>(items: readonly Item[], limit: number, now: number): Item[] => {
  if (items.length <= limit) return [...items]
  const first = (Math.floor(now / 60_000) * limit) % items.length
  return [...items.slice(first), ...items.slice(0, first)].slice(0, limit)
}
