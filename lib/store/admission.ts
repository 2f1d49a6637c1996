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
import { itemKey } from './keys.ts'

const admissionSchema = z.object({ revision: z.number(), slots: z.array(z.string()) })
const waitingSchema = z.object({ session_id: z.string(), since: z.string() })
export type Waiting = z.infer<typeof waitingSchema>

/**
 * A team's slots: the sessions that hold one, by id and never as a number, so that a repeat neither leaks nor doubles
 * one; and the queue of those that wait, first in, first out.
 */
export const createAdmission = (dynamo: DynamoDBDocumentClient, table: string) => {
  const read = async (team: string) => {
    const answer = await dynamo.send(
      new GetCommand({ TableName: table, Key: itemKey.admission(team), ConsistentRead: true }),
    )
    return answer.Item ? admissionSchema.parse(answer.Item) : { revision: 0, slots: [] }
  }

  const change = (team: string, next: (slots: string[]) => string[] | null): Promise<boolean> =>
    pRetry(
      async () => {
        const { revision, slots } = await read(team)
        const changed = next(slots)
        if (!changed) return false
        await dynamo.send(
          new PutCommand({
            TableName: table,
            Item: { ...itemKey.admission(team), revision: revision + 1, slots: changed },
            ConditionExpression: 'attribute_not_exists(pk) OR revision = :revision',
            ExpressionAttributeValues: { ':revision': revision },
          }),
        )
        return true
      },
      {
        retries: 20,
        minTimeout: 5,
        maxTimeout: 200,
        randomize: true,
        shouldRetry: ({ error }) => error instanceof ConditionalCheckFailedException,
      },
    )

  return {
    /** The sessions that hold a slot. */
    slots: async (team: string): Promise<string[]> => (await read(team)).slots,

    /** Takes a slot; true also when the session holds one already, false when all are taken. */
    acquire: async (team: string, id: string, limit: number): Promise<boolean> => {
      let held = false
      await change(team, (slots) => {
        held = slots.includes(id)
        if (held || slots.length >= limit) return null
        held = true
        return [...slots, id]
      })
      return held
    },

    /** Takes a slot for a session that is already under way, above the limit if need be: a person has set it going. */
    take: async (team: string, id: string): Promise<void> => {
      await change(team, (slots) => (slots.includes(id) ? null : [...slots, id]))
    },

    release: async (team: string, id: string): Promise<void> => {
      await change(team, (slots) => (slots.includes(id) ? slots.filter((slot) => slot !== id) : null))
    },

    /** Joins the queue at the time of the first asking; a repeat keeps its place. */
    wait: async (team: string, since: string, id: string): Promise<void> => {
      await dynamo.send(
        new PutCommand({
          TableName: table,
          Item: { ...itemKey.waiting(team, since, id), session_id: id, since },
        }),
      )
    },

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
          ExpressionAttributeValues: { ':pk': itemKey.admission(team).pk, ':prefix': 'WAITING#' },
          ConsistentRead: true,
          Limit: 1,
        }),
      )
      const item = answer.Items?.[0]
      return item ? waitingSchema.parse(item) : null
    },
  }
}
