import { PutCommand } from '@aws-sdk/lib-dynamodb'
import type { Fact } from '../../lib/journal/facts.ts'
import { changeItem, type SessionItem } from '../../lib/session/item.ts'
import { sessionPut } from '../../lib/store/sessions.ts'
import type { Pieces } from './pieces.ts'
import { at, sessionAt, system } from './sessions.ts'

const said = (count: number): Fact[] =>
  Array.from({ length: count }, (_, n) => ({
    type: 'error',
    data: { message: `message ${n}, zażółć 🙂 \ufffd` },
  }))

/**
 * A settled session, whose journal is in the bucket as two segments of two entries and then segments of so many each,
 * and is not sealed.
 */
export const settledWith = async (
  { platform, clients, settings }: Pick<Pieces, 'platform' | 'clients' | 'settings'>,
  segments: readonly number[],
  more: Partial<Pick<SessionItem, 'team'>> = {},
): Promise<SessionItem> => {
  const drain = async (item: SessionItem, facts: Fact[]) => {
    await platform.journals.drain(item)
    return changeItem(item, { actor: system, facts, drained: item.journal_head.sequence }, at(1000))
  }
  const runtime = { settled: true, start_pending: false }
  let item = changeItem(
    { ...sessionAt('merged', 'Settle'), ...more },
    { actor: system, facts: [], runtime },
    at(1000),
  )
  for (const count of segments) item = await drain(item, said(count))
  item = await drain(item, [])
  await clients.dynamo.send(new PutCommand(sessionPut(settings.table, item, 0)))
  return item
}
