import { PutCommand } from '@aws-sdk/lib-dynamodb'
import type { AgentRecord } from '../../lib/journal/agent/envelope.ts'
import type { Statement } from '../../lib/journal/entry.ts'
import { changeItem, createItem, type SessionItem } from '../../lib/session/item.ts'
import { sessionPut } from '../../lib/store/sessions.ts'
import type { Pieces } from './pieces.ts'
import { ada, at, creation, system } from './sessions.ts'

type Id = { team: string; id: string }

/** The facts by which a session is over with nothing left running. */
export const theEnd: readonly Statement[] = [
  { type: 'session_cancelled', data: { reason: 'enough', by: 'ada' } },
  { type: 'state_changed', data: { from: 'created', to: 'abandoned', trigger: 'cancelled' } },
  { type: 'execution_stopped', data: { at_step: 'Admit' } },
]

/** A session in memory that did what these statements say, every line still in its outbox. */
export const sessionThat = (
  { team, id }: Id,
  statements: readonly Statement[],
  first: Statement['context'] = {},
): SessionItem => {
  const created: Statement = { ...creation(id, team), context: first }
  const item = createItem({ team, id }, { actor: ada, facts: [created] }, first.time ?? at(0))
  return changeItem(item, { actor: system, facts: statements }, at(1000))
}

/** What a journal says of records that somebody else's walk came to. */
export const stated = (records: readonly AgentRecord[]): Statement[] =>
  records.flatMap((record) => {
    if (record.type === 'session_created') return []
    const { sequence, session_id, id, time, branch, causation_id, correlation_id, metadata, ...fact } = record
    return [{ ...fact, context: { id, time, branch } }]
  })

/** Puts a session where a service finds it: its journal in the bucket, its item in the table, settled. */
export const store = async (
  { platform, clients, settings }: Pick<Pieces, 'platform' | 'clients' | 'settings'>,
  made: SessionItem,
): Promise<SessionItem> => {
  await platform.journals.drain(made)
  const runtime = { ...made.runtime, start_pending: false, settled: true }
  const item = { ...made, outbox: [], runtime }
  await clients.dynamo.send(new PutCommand(sessionPut(settings.table, item, 0)))
  return item
}
