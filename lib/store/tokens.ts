import { ConditionalCheckFailedException } from '@aws-sdk/client-dynamodb'
import { type DynamoDBDocumentClient, GetCommand, PutCommand } from '@aws-sdk/lib-dynamodb'
import { z } from 'zod'
import { roleSchema } from '../team/roles.ts'
import { itemKey } from './keys.ts'
import type { Clock } from './sessions.ts'

/** Whom a bearer token stands for: a person of a team, or the one worker that was launched for one session. */
export const principalSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('person'), team: z.string(), principal: z.string(), role: roleSchema }),
  z.strictObject({
    kind: z.literal('worker'),
    team: z.string(),
    session_id: z.string(),
    worker_id: z.string(),
  }),
])
export type Principal = z.infer<typeof principalSchema>

const tokenItemSchema = z.object({ principal: principalSchema, expires_at: z.number().nullable() })

export type Tokens = ReturnType<typeof createTokens>

/** Bearer tokens, stored by the hash of their secret. */
export const createTokens = (dynamo: DynamoDBDocumentClient, table: string, clock: Clock) => ({
  /** Records a token; a repeat with the same secret changes nothing. `expiresAt` is epoch milliseconds. */
  add: async (secret: string, principal: Principal, expiresAt: number | null): Promise<void> => {
    const expires_at = expiresAt === null ? null : Math.floor(expiresAt / 1000)
    const Item = { ...itemKey.token(secret), principal, ...(expires_at === null ? {} : { expires_at }) }
    try {
      await dynamo.send(
        new PutCommand({ TableName: table, Item, ConditionExpression: 'attribute_not_exists(pk)' }),
      )
    } catch (error) {
      if (!(error instanceof ConditionalCheckFailedException)) throw error
    }
  },

  /** Whom a secret stands for; null when it is unknown or has expired. */
  find: async (secret: string): Promise<Principal | null> => {
    // A worker shows its token moments after it was recorded.
    const answer = await dynamo.send(
      new GetCommand({ TableName: table, Key: itemKey.token(secret), ConsistentRead: true }),
    )
    const parsed = tokenItemSchema.safeParse({ expires_at: null, ...answer.Item })
    if (!parsed.success) return null
    const { principal, expires_at } = parsed.data
    return expires_at !== null && expires_at * 1000 <= clock() ? null : principal
  },
})
