import type { Actor, Head, Statement } from '../journal/entry.ts'
import type { Document } from './document.ts'
import { changeItem, freshRuntime, type SessionItem } from './item.ts'

type Identity = { team: string; id: string }
/** What a journal was found to come to. */
export type Folded = { document: Document; head: Head; agent_sequence: number | null }

/**
 * The item of a session that ended elsewhere and whose whole journal is there: settled, with nothing under way. How often
 * it had been written can't be known; `version` is its number of lifecycle records, which is no less than that. It has had
 * no execution here, so its attempt is 0.
 */
export const endedItem = (
  { team, id }: Identity,
  { document, head, agent_sequence }: Folded,
  version: number,
  importId: string,
  time: string,
): SessionItem => ({
  ...{ team, id, revision: 1, version, document, journal_head: head, agent_sequence, outbox: [] },
  runtime: {
    ...freshRuntime(time),
    ...{ attempt: 0, start_pending: false, settled: true, imported: { by: importId, at: time } },
  },
})

/**
 * The item of a session that begins with entries which are in its journal already: it starts like any other, with these
 * facts behind them.
 */
export const startingItem = (
  { team, id }: Identity,
  { document, head, agent_sequence }: Folded,
  behind: { actor: Actor; facts: readonly Statement[] },
  importId: string,
  time: string,
): SessionItem =>
  changeItem(
    {
      ...{ team, id, revision: 0, version: 1, document, journal_head: head, agent_sequence, outbox: [] },
      runtime: { ...freshRuntime(time), imported: { by: importId, at: time } },
    },
    behind,
    time,
  )
