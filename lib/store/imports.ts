import { ConditionalCheckFailedException } from '@aws-sdk/client-dynamodb'
import { type DynamoDBDocumentClient, GetCommand, PutCommand } from '@aws-sdk/lib-dynamodb'
import { z } from 'zod'
import { GatehouseError } from '../errors.ts'
import { limits } from '../limits.ts'
import { type SessionItem, sessionItemSchema } from '../session/item.ts'
import { dueShard, itemKey } from './keys.ts'
import { type Id, wasMade } from './session-rows.ts'
import { type Clock, sessionPut } from './sessions.ts'

/** A session's id that one import holds for itself; the import may write until `until` (epoch milliseconds). */
export type Reservation = Id & {
  import_id: string
  fingerprint: string
  reserved_at: string
  until: number
}

const heldSchema = z.object({
  removing_at: z.string(),
  importing: z.object({ import_id: z.string(), fingerprint: z.string() }).optional(),
})
type Held = z.infer<typeof heldSchema>

const doneSchema = z.object({ session_id: z.string(), request: z.string() })

const later = (detail: string) => new GatehouseError('conflict', detail)

/**
 * What keeps two imports of one session apart. An import writes a session's objects before the session's item, and two
 * that wrote at once could mix their bytes. So it first takes the session's own row, as one that is being removed, which
 * is there for nobody: only the holder writes, and only what its fingerprint names, so that its own repeat writes the
 * same bytes; and one put turns that row into the item. If it never comes to that, the row falls due and the sweep removes
 * it with everything that was written, as it does with any removal that was begun. It falls due long after the holder has
 * to have stopped writing, and nobody else can take it before it is gone.
 */
export const createImports = (dynamo: DynamoDBDocumentClient, table: string, clock: Clock) => {
  const row = async (key: Record<string, string>): Promise<Record<string, unknown> | undefined> =>
    (await dynamo.send(new GetCommand({ TableName: table, Key: key, ConsistentRead: true }))).Item

  const reservation = (id: Id, importId: string, fingerprint: string, reservedAt: string): Reservation => ({
    ...{ team: id.team, id: id.id, import_id: importId, fingerprint, reserved_at: reservedAt },
    until: Date.parse(reservedAt) + limits.importWriteMs,
  })

  const goOn = (id: Id, importId: string, fingerprint: string, held: Held): Reservation => {
    const { importing, removing_at } = held
    if (!importing) throw later(`session ${id.id} is being removed`)
    const found = reservation(id, importId, fingerprint, removing_at)
    const isMine = importing.import_id === importId && importing.fingerprint === fingerprint
    if (!isMine || clock() >= found.until)
      throw later(`another import of session ${id.id} was begun; it ends or is removed in a while`)
    return found
  }

  /** The session where this very import made it before. Throws `already_exists` where another did. */
  const requireOwn = (item: SessionItem, importId: string): SessionItem => {
    if (item.runtime.imported?.by === importId) return item
    throw new GatehouseError('already_exists', `there is a session ${item.id}; an import never merges`)
  }

  /** What stands where the session would: the item that this import made, or its reservation. */
  const found = async (
    id: Id,
    importId: string,
    fingerprint: string,
  ): Promise<SessionItem | Reservation | null> => {
    const there = await row(itemKey.session(id.team, id.id))
    if (!there) return null
    const held = heldSchema.safeParse(there)
    if (held.success) return goOn(id, importId, fingerprint, held.data)
    return requireOwn(sessionItemSchema.strip().parse(there), importId)
  }

  const take = (mine: Reservation): Promise<boolean> =>
    wasMade(
      dynamo.send(
        new PutCommand({
          TableName: table,
          Item: {
            ...itemKey.session(mine.team, mine.id),
            removing_at: mine.reserved_at,
            importing: { import_id: mine.import_id, fingerprint: mine.fingerprint },
            due_shard: dueShard(mine.id),
            due_at: new Date(Date.parse(mine.reserved_at) + limits.importHoldMs).toISOString(),
          },
          ConditionExpression: 'attribute_not_exists(pk)',
        }),
      ),
    )

  return {
    /**
     * Holds a session's id for one import of what the fingerprint names. The item where this import made it before.
     * Throws `already_exists` when there is such a session, and `conflict` while another import or a removal holds it.
     */
    reserve: async (id: Id, importId: string, fingerprint: string): Promise<SessionItem | Reservation> => {
      const mine = reservation(id, importId, fingerprint, new Date(clock()).toISOString())
      if (await take(mine)) return mine
      const there = await found(id, importId, fingerprint)
      if (!there) throw later(`session ${id.id} was removed just now`)
      return there
    },

    /** Turns a reservation into the session. Throws `conflict` when it is held no more. */
    create: async (item: SessionItem, held: Reservation): Promise<SessionItem> => {
      try {
        await dynamo.send(
          new PutCommand({
            ...sessionPut(table, item, 0),
            ConditionExpression:
              'removing_at = :at AND importing.import_id = :import AND importing.fingerprint = :fingerprint',
            ExpressionAttributeValues: {
              ':at': held.reserved_at,
              ':import': held.import_id,
              ':fingerprint': held.fingerprint,
            },
          }),
        )
        return item
      } catch (error) {
        if (!(error instanceof ConditionalCheckFailedException)) throw error
      }
      const there = await found(item, held.import_id, held.fingerprint)
      if (there && 'document' in there) return there
      throw later(`the import of session ${item.id} took too long`)
    },

    /** Notes what an import came to, for its repeats; `request` names what was asked. */
    note: async (team: string, importId: string, session_id: string, request: string): Promise<void> => {
      const expires_at = Math.floor((clock() + limits.idempotencyTtlMs) / 1000)
      const Item = { ...itemKey.import(team, importId), session_id, request, expires_at }
      await dynamo.send(new PutCommand({ TableName: table, Item }))
    },

    /** What an import came to before; null for one that came to nothing yet. */
    noted: async (team: string, importId: string): Promise<z.infer<typeof doneSchema> | null> =>
      doneSchema.safeParse(await row(itemKey.import(team, importId))).data ?? null,
  }
}
