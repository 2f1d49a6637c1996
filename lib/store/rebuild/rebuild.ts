import { type DynamoDBDocumentClient, PutCommand } from '@aws-sdk/lib-dynamodb'
import { GatehouseError } from '../../errors.ts'
import type { Entry } from '../../journal/entry.ts'
import type { JournalState } from '../../journal/state.ts'
import { createVerifier } from '../../journal/verify.ts'
import { freshRuntime, type Seal, type SessionItem } from '../../session/item.ts'
import type { Journals } from '../journals.ts'
import type { Payloads } from '../payloads.ts'
import { sessionPut } from '../sessions.ts'

type Id = { team: string; id: string }

/** What of an older row is gone on from. */
export type Before = { revision: number; version: number; attempt: number }
const nothing: Before = { revision: 0, version: 0, attempt: 0 }

type Read = { state: JournalState; records: number; attempt: number }

const attemptIn = ({ type, data }: Entry): number =>
  type === 'execution_started' && typeof data.attempt === 'number' ? data.attempt : 0

const damaged = (id: Id, why: string) =>
  new GatehouseError('journal_damaged', `the journal of ${id.id} can’t be replayed: ${why}`)

/** Reads and proves a whole journal, which has to reach the sequence `last`. Throws `journal_damaged`. */
const readJournal = async (
  { journals, payloads }: { journals: Pick<Journals, 'segments'>; payloads: Payloads },
  id: Id,
  seal: Seal | null,
  last: number,
): Promise<Read> => {
  const verifier = createVerifier(id.id)
  let records = 0
  let attempt = 1
  const require = () => {
    const problem = verifier.problem()
    if (problem) throw damaged(id, `entry ${problem.sequence}: ${problem.message}`)
  }
  for await (const lines of journals.segments({ ...id, runtime: { sealed: seal } }))
    for (const line of lines) {
      const entry = verifier.take(line)
      require()
      if (!entry) continue
      verifier.fold(await payloads.resolve(id, entry))
      require()
      if (entry.kind === 'record') records++
      attempt = Math.max(attempt, attemptIn(entry))
    }
  const state = verifier.state()
  if (!state || state.head.sequence < last)
    throw damaged(id, `it ends at entry ${verifier.head().sequence}, and entry ${last} is there`)
  return { state, records, attempt }
}

/** The item of a session whose journal is whole. One that had not ended has no execution: its attempt is a new one. Pure. */
const rebuiltItem = (
  { team, id }: Id,
  { state, records, attempt }: Read,
  { seal, before, time }: { seal: Seal | null; before: Before; time: string },
): SessionItem => {
  const { document, head, agent_sequence } = state
  const settled = document.execution_stopped
  const resting = document.stopped
  const latest = Math.max(attempt, before.attempt)
  return {
    ...{ team, id, document, journal_head: head, agent_sequence, outbox: [] },
    revision: before.revision + 1,
    version: Math.max(records, before.version + 1),
    runtime: {
      ...freshRuntime(time),
      ...{ attempt: settled || resting ? latest : latest + 1, start_pending: false },
      ...{ settled, resting, sealed: seal },
    },
  }
}

/**
 * The item that a session's journal comes to. Reads and writes nothing else. `last` is the last sequence that is known to
 * be there. Throws `journal_damaged`.
 */
export const rebuild = async (
  parts: { journals: Pick<Journals, 'segments'>; payloads: Payloads },
  id: Id,
  found: { seal: Seal | null; last: number; before: Before | null; time: string },
): Promise<SessionItem> => {
  const read = await readJournal(parts, id, found.seal, found.last)
  return rebuiltItem(id, read, { ...found, before: found.before ?? nothing })
}

/** Writes a rebuilt item, over the row that was seen and no other. */
export const putRebuilt = async (
  dynamo: DynamoDBDocumentClient,
  table: string,
  item: SessionItem,
): Promise<void> => {
  await dynamo.send(new PutCommand(sessionPut(table, item, item.revision - 1)))
}
