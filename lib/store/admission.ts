import { ConditionalCheckFailedException } from '@aws-sdk/client-dynamodb'
import {
  DeleteCommand,
  type DynamoDBDocumentClient,
  GetCommand,
  PutCommand,
  QueryCommand,
} from '@aws-sdk/lib-dynamodb'
import pRetry from 'p-retry'
import { z } from 'zod'
import { limits } from '../limits.ts'
import { itemKey } from './keys.ts'
import type { Clock } from './sessions.ts'

/** Slots by the session that holds them; one is held until `expires_at` unless it is renewed or given back. */
const slotsSchema = z.record(z.string(), z.object({ expires_at: z.iso.datetime({ precision: 3 }) }))
type Slots = z.infer<typeof slotsSchema>
/** Slots without a lease, as they once were kept, count for nobody: who still works takes one again. */
const leaseless = z.array(z.string()).transform((): z.infer<typeof slotsSchema> => ({}))
const admissionSchema = z.object({ revision: z.number(), slots: z.union([slotsSchema, leaseless]) })

const waitingSchema = z.object({ session_id: z.string(), since: z.string() })
export type Waiting = z.infer<typeof waitingSchema>

/** Where a session stands, from 1, and how many wait; null for a number that is above what is counted. */
export type Place = { place: number | null; waiting: number | null }

const waitingPrefix = 'WAITING#'
/** The most of a queue that is counted to tell a place in it. */
const countedWaiting = 1000

const live = (slots: Slots, now: number): Slots =>
  Object.fromEntries(Object.entries(slots).filter(([, slot]) => Date.parse(slot.expires_at) > now))

/** The slots with one leased to a session and without those that lapsed; null while half of its lease remains. */
const leased = (slots: Slots, id: string, now: number): Slots | null => {
  const mine = slots[id]
  if (mine && Date.parse(mine.expires_at) - now >= limits.slotLeaseMs / 2) return null
  return { ...live(slots, now), [id]: { expires_at: new Date(now + limits.slotLeaseMs).toISOString() } }
}

const without = (slots: Slots, id: string, now: number): Slots | null => {
  if (!slots[id]) return null
  const { [id]: _, ...others } = live(slots, now)
  return others
}

/**
 * A team's slots: leases keyed by session and never a number, so that a repeat neither leaks nor doubles one and a lost
 * one lapses; and the queue of the sessions that wait, first in, first out.
 */
export const createAdmission = (dynamo: DynamoDBDocumentClient, table: string, clock: Clock) => {
  const read = async (team: string) => {
    const answer = await dynamo.send(
      new GetCommand({ TableName: table, Key: itemKey.admission(team), ConsistentRead: true }),
    )
    return answer.Item ? admissionSchema.parse(answer.Item) : { revision: 0, slots: {} }
  }

  /** Reads, decides and writes until the write wins; null from `next` means that there is nothing to write. */
  const change = (team: string, next: (slots: Slots, now: number) => Slots | null): Promise<void> =>
    pRetry(
      async () => {
        const { revision, slots } = await read(team)
        const changed = next(slots, clock())
        if (!changed) return
        await dynamo.send(
          new PutCommand({
            TableName: table,
            Item: { ...itemKey.admission(team), revision: revision + 1, slots: changed },
            ConditionExpression: 'attribute_not_exists(pk) OR revision = :revision',
            ExpressionAttributeValues: { ':revision': revision },
          }),
        )
      },
      {
        retries: 50,
        minTimeout: 5,
        maxTimeout: 250,
        factor: 1.6,
        randomize: true,
        shouldRetry: ({ error }) => error instanceof ConditionalCheckFailedException,
      },
    )

  /** How many wait up to a key, it included; null when they are more than are counted. */
  const countUpTo = async (team: string, last: string): Promise<number | null> => {
    let counted = 0
    let start: Record<string, unknown> | undefined
    do {
      const answer = await dynamo.send(
        new QueryCommand({
          TableName: table,
          Select: 'COUNT',
          KeyConditionExpression: 'pk = :pk AND sk BETWEEN :first AND :last',
          ExpressionAttributeValues: {
            ':pk': itemKey.admission(team).pk,
            ':first': waitingPrefix,
            ':last': last,
          },
          ConsistentRead: true,
          Limit: countedWaiting + 1 - counted,
          ...(start ? { ExclusiveStartKey: start } : {}),
        }),
      )
      counted += answer.Count ?? 0
      if (counted > countedWaiting) return null
      start = answer.LastEvaluatedKey
    } while (start)
    return counted
  }

  return {
    /** The slots on record, also those that lapsed and have not been replaced. */
    slots: async (team: string): Promise<{ session_id: string; expires_at: string }[]> =>
      Object.entries((await read(team)).slots).map(([session_id, slot]) => ({ session_id, ...slot })),

    /**
     * Takes a slot unless as many as the limit are held by others; true also when the session holds one, which is
     * renewed then. A lapsed slot counts for nobody.
     */
    acquire: async (team: string, id: string, limit: number): Promise<boolean> => {
      let held = false
      await change(team, (slots, now) => {
        const holders = live(slots, now)
        held = id in holders || Object.keys(holders).length < limit
        return held ? leased(slots, id, now) : null
      })
      return held
    },

    /**
     * Keeps the slot of a session that is under way: renews it once less than half of its lease remains, and takes one,
     * above the limit if need be, when it holds none. Returns whether it held none, or none any more.
     */
    take: async (team: string, id: string): Promise<boolean> => {
      let taken = false
      await change(team, (slots, now) => {
        // Stays true over a try whose write went through and whose answer was lost.
        taken ||= !(id in live(slots, now))
        return leased(slots, id, now)
      })
      return taken
    },

    /** Gives a slot back; harmless for a session that holds none. */
    release: (team: string, id: string): Promise<void> =>
      change(team, (slots, now) => without(slots, id, now)),

    /** Joins the queue at the time of the first asking; a repeat keeps its place. */
    wait: async (team: string, { since, session_id }: Waiting): Promise<void> => {
      await dynamo.send(
        new PutCommand({
          TableName: table,
          Item: { ...itemKey.waiting(team, since, session_id), session_id, since },
        }),
      )
    },

    /** Leaves the queue; harmless for one that does not wait. */
    leave: async (team: string, { since, session_id }: Waiting): Promise<void> => {
      await dynamo.send(
        new DeleteCommand({ TableName: table, Key: itemKey.waiting(team, since, session_id) }),
      )
    },

    /** The first in the queue. */
    first: async (team: string): Promise<Waiting | null> => {
      const answer = await dynamo.send(
        new QueryCommand({
          TableName: table,
          KeyConditionExpression: 'pk = :pk AND begins_with(sk, :prefix)',
          ExpressionAttributeValues: { ':pk': itemKey.admission(team).pk, ':prefix': waitingPrefix },
          ConsistentRead: true,
          Limit: 1,
        }),
      )
      const item = answer.Items?.[0]
      return item ? waitingSchema.parse(item) : null
    },

    /** Every place in the queue, by one reading: a function that tells a session's; null for one that does not wait. */
    places: async (team: string): Promise<(since: string, id: string) => Place | null> => {
      const sorted: unknown[] = []
      let start: Record<string, unknown> | undefined
      do {
        const answer = await dynamo.send(
          new QueryCommand({
            TableName: table,
            ProjectionExpression: 'sk',
            KeyConditionExpression: 'pk = :pk AND begins_with(sk, :prefix)',
            ExpressionAttributeValues: { ':pk': itemKey.admission(team).pk, ':prefix': waitingPrefix },
            ConsistentRead: true,
            Limit: countedWaiting + 1 - sorted.length,
            ...(start ? { ExclusiveStartKey: start } : {}),
          }),
        )
        sorted.push(...(answer.Items ?? []).map(({ sk }) => sk))
        start = answer.LastEvaluatedKey
      } while (start && sorted.length <= countedWaiting)
      const places = new Map(sorted.map((key, index) => [key, index + 1]))
      const all = sorted.length > countedWaiting ? null : sorted.length
      return (since, id) => {
        const place = places.get(itemKey.waiting(team, since, id).sk)
        // Who is not among those that were counted waits behind them, or not at all.
        if (place === undefined) return all === null ? { place: null, waiting: null } : null
        return { place: place > countedWaiting ? null : place, waiting: all }
      }
    },

    /** A session's place in the queue; null when it does not wait. */
    place: async (team: string, since: string, id: string): Promise<Place | null> => {
      const key = itemKey.waiting(team, since, id)
      const [own, place, waiting] = await Promise.all([
        dynamo.send(new GetCommand({ TableName: table, Key: key, ConsistentRead: true })),
        countUpTo(team, key.sk),
        countUpTo(team, `${waitingPrefix}~`),
      ])
      if (!own.Item) return null
      // The three looks are not one: others, or the session itself, may have left between them.
      const atLeast = Math.max(1, place ?? 1)
      return {
        place: place === null ? null : atLeast,
        waiting: waiting === null ? null : Math.max(atLeast, waiting),
      }
    },
  }
}
