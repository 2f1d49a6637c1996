import { ConditionalCheckFailedException } from '@aws-sdk/client-dynamodb'
import {
  DeleteCommand,
  type DynamoDBDocumentClient,
  GetCommand,
  PutCommand,
  UpdateCommand,
} from '@aws-sdk/lib-dynamodb'
import { z } from 'zod'
import { GatehouseError } from '../errors.ts'
import { limits } from '../limits.ts'
import { itemKey } from './keys.ts'
import { wasMade } from './session-rows.ts'
import type { Clock } from './sessions.ts'

/** An answer as it was first given. */
export const storedAnswerSchema = z.strictObject({
  status: z.number().int(),
  headers: z.record(z.string(), z.string()),
  body: z.string(),
})
export type StoredAnswer = z.infer<typeof storedAnswerSchema>

const claimSchema = z.object({
  fingerprint: z.string(),
  /** An id that the call will give to what it creates; a repeat after a crash gives the same one. */
  subject_id: z.string(),
  claimed_at: z.number(),
  answer: storedAnswerSchema.nullable(),
})

export type Claim = { subjectId: string; claimedAt: number; answer: StoredAnswer | null }

/** Idempotency keys of a team: the first call claims its key, runs and stores its answer; a repeat gets that answer. */
export const createIdempotency = (dynamo: DynamoDBDocumentClient, table: string, clock: Clock) => {
  const put = (
    team: string,
    key: string,
    claim: z.infer<typeof claimSchema>,
    condition: string | null,
    values: Record<string, unknown> = {},
  ) =>
    dynamo.send(
      new PutCommand({
        TableName: table,
        Item: {
          ...itemKey.idempotency(team, key),
          ...claim,
          expires_at: Math.floor((clock() + limits.idempotencyTtlMs) / 1000),
        },
        ...(condition ? { ConditionExpression: condition } : {}),
        ...(Object.keys(values).length > 0 ? { ExpressionAttributeValues: values } : {}),
      }),
    )

  /**
   * Claims a key for a call. The first gets a claim without an answer. Throws `idempotency_mismatch` for another body
   * and `idempotency_in_progress` while the first call runs; a first call that died leaves its key to the next.
   */
  const claim = async (team: string, key: string, fingerprint: string, subjectId: string): Promise<Claim> => {
    const now = clock()
    const fresh = { fingerprint, subject_id: subjectId, claimed_at: now, answer: null }
    try {
      await put(team, key, fresh, 'attribute_not_exists(pk) OR expires_at <= :now', {
        ':now': Math.floor(now / 1000),
      })
      return { subjectId, claimedAt: now, answer: null }
    } catch (error) {
      if (!(error instanceof ConditionalCheckFailedException)) throw error
    }
    const found = await dynamo.send(
      new GetCommand({ TableName: table, Key: itemKey.idempotency(team, key), ConsistentRead: true }),
    )
    // Given back between the two.
    if (!found.Item) return claim(team, key, fingerprint, subjectId)
    const before = claimSchema.parse(found.Item)
    if (before.fingerprint !== fingerprint)
      throw new GatehouseError('idempotency_mismatch', 'this key came with another request before')
    if (before.answer)
      return { subjectId: before.subject_id, claimedAt: before.claimed_at, answer: before.answer }
    if (now - before.claimed_at < limits.idempotencyLeaseMs) {
      throw new GatehouseError(
        'idempotency_in_progress',
        'the first call with this key has not been answered yet',
      )
    }
    try {
      await put(team, key, { ...before, claimed_at: now }, 'claimed_at = :before', {
        ':before': before.claimed_at,
      })
      return { subjectId: before.subject_id, claimedAt: now, answer: null }
    } catch (error) {
      if (!(error instanceof ConditionalCheckFailedException)) throw error
      throw new GatehouseError('idempotency_in_progress', 'another repeat of this call is running')
    }
  }

  return {
    claim,

    /** Prolongs a claim whose call still runs; null when it is in other hands by now. */
    renew: async (team: string, key: string, { claimedAt, ...claim }: Claim): Promise<Claim | null> => {
      const now = clock()
      const renewed = await wasMade(
        dynamo.send(
          new UpdateCommand({
            TableName: table,
            Key: itemKey.idempotency(team, key),
            UpdateExpression: 'SET claimed_at = :now',
            ConditionExpression: 'claimed_at = :mine',
            ExpressionAttributeValues: { ':now': now, ':mine': claimedAt },
          }),
        ),
      )
      return renewed ? { ...claim, claimedAt: now } : null
    },

    /** Stores the answer of a claimed key. */
    store: async (
      team: string,
      key: string,
      fingerprint: string,
      subjectId: string,
      answer: StoredAnswer,
    ): Promise<void> => {
      await put(team, key, { fingerprint, subject_id: subjectId, claimed_at: clock(), answer }, null)
    },

    /** Gives a key back after a call that changed nothing, so that a corrected repeat is a first call. */
    release: async (team: string, key: string, { claimedAt }: Claim): Promise<void> => {
      // A call that took longer than its lease may find its key in other hands; it is theirs then.
      await wasMade(
        dynamo.send(
          new DeleteCommand({
            TableName: table,
            Key: itemKey.idempotency(team, key),
            ConditionExpression: 'claimed_at = :mine',
            ExpressionAttributeValues: { ':mine': claimedAt },
          }),
        ),
      )
    },

    /** Leaves a key to the next repeat at once, after a call that failed and may have written: for the same subject. */
    reopen: async (team: string, key: string, fingerprint: string, claim: Claim): Promise<void> => {
      const open = { fingerprint, subject_id: claim.subjectId, claimed_at: 0, answer: null }
      await wasMade(put(team, key, open, 'claimed_at = :mine', { ':mine': claim.claimedAt }))
    },
  }
}
