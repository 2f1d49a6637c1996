import { type DynamoDBDocumentClient, GetCommand } from '@aws-sdk/lib-dynamodb'
import { z } from 'zod'
import { headSchema } from '../../../lib/journal/entry.ts'
import { sealSchema } from '../../../lib/session/item.ts'
import { itemKey } from '../../../lib/store/keys.ts'
import type { Before } from '../../../lib/store/rebuild/rebuild.ts'
import type { KeptJournal } from './journal-folders.ts'

/** As much of a session's row as is held against its journal. */
const rowSchema = z.object({
  revision: z.number().int(),
  version: z.number().int(),
  journal_head: headSchema,
  runtime: z.object({ attempt: z.number().int(), sealed: sealSchema.nullable().default(null) }),
})
type Row = z.infer<typeof rowSchema>

/** How a row falls short of its journal; `before` is what is still known by it. */
export type Shortfall = { kept: KeptJournal; why: string; before: Before | null }

/** Why a row that can be read is not what the journal came to; null when it can be. Pure. */
export const whyBehind = (
  { journal_head: head, runtime: { sealed } }: Row,
  { first, last, sealed: objects }: KeptJournal,
): string | null => {
  if (head.sequence < last.sequence)
    return `its row knows of entries up to ${head.sequence}, its journal goes up to ${last.sequence}`
  if (head.sequence === last.sequence && last.hash !== null && last.hash !== head.hash)
    return `its row and its journal have another entry ${last.sequence}`
  if (sealed === null && first !== 0 && objects.length > 0)
    return 'its row knows nothing of its sealed journal'
  return null
}

/** Holds a journal against its row; null where nothing is missing, and for a row that is damaged or going. */
export const shortfallOf = async (
  { dynamo, table }: { dynamo: DynamoDBDocumentClient; table: string },
  kept: KeptJournal,
): Promise<Shortfall | null> => {
  const { Item: row } = await dynamo.send(
    new GetCommand({ TableName: table, Key: itemKey.session(kept.team, kept.id), ConsistentRead: true }),
  )
  if (!row) return { kept, why: 'its row is missing', before: null }
  if ('removing_at' in row) return null
  const { data } = rowSchema.safeParse(row)
  const why = data ? whyBehind(data, kept) : null
  if (!data || why === null) return null
  return {
    kept,
    why,
    before: { revision: data.revision, version: data.version, attempt: data.runtime.attempt },
  }
}
