import { DeleteCommand, type DynamoDBDocumentClient, GetCommand, UpdateCommand } from '@aws-sdk/lib-dynamodb'
import { z } from 'zod'
import { finishedAt } from '../session/due.ts'
import { runtimeSchema } from '../session/item.ts'
import { terminalStates } from '../session/states.ts'
import { dueShard, itemKey } from './keys.ts'
import { type Id, idOf, rowReader, wasMade } from './session-rows.ts'

/** A session that retention may remove, at the revision at which it was seen. `finished_at` is its last change or its import. */
export type Finished = Id & { revision: number; finished_at: string }
const finishedSchema = z.object({
  revision: z.number(),
  document: z.object({ updated_at: z.string() }),
  runtime: z.object({ imported: runtimeSchema.shape.imported }).prefault({}),
})
const finishedOf = (attributes: Record<string, unknown>): Finished[] => {
  const { data } = finishedSchema.safeParse(attributes)
  if (!data) return []
  const { revision, document, runtime } = data
  return [{ ...idOf(attributes), revision, finished_at: finishedAt(document, runtime.imported) }]
}

/** Holds of a row that retention may remove: ended, settled, with nothing on its way out, and without retained work. */
const isFinished = {
  expression: [
    `document.#state IN (${terminalStates.map((state) => `:${state}`).join(', ')})`,
    'runtime.settled = :true AND runtime.start_pending = :false',
    'size(outbox) = :zero AND size(runtime.answers) = :zero',
    '(attribute_not_exists(document.retained_work) OR document.retained_work = :false)',
    'attribute_not_exists(removing_at)',
  ].join(' AND '),
  names: { '#state': 'state' },
  values: {
    ...Object.fromEntries(terminalStates.map((state) => [`:${state}`, state])),
    ...{ ':true': true, ':false': false, ':zero': 0 },
  },
}

const removingSchema = z.object({
  removing_at: z.string(),
  document: z.object({ repo: z.string() }).optional().catch(undefined),
})

/** Which sessions may go, and how a session's row goes: marked first, and last of all that belongs to it. */
export const createRemovals = (dynamo: DynamoDBDocumentClient, table: string, clock: () => number) => {
  const firstRows = rowReader(dynamo, table)
  return {
    /**
     * The first `limit` of a team's sessions that retention may remove, in the order of their creation. Reads the
     * team's rows up to there, and of each only these attributes.
     */
    finished: async (team: string, limit: number): Promise<Finished[]> => {
      const rows = await firstRows(
        {
          KeyConditionExpression: 'pk = :pk AND begins_with(sk, :prefix)',
          ProjectionExpression: 'pk, sk, revision, document.updated_at, runtime.imported',
          FilterExpression: isFinished.expression,
          ExpressionAttributeNames: isFinished.names,
          ExpressionAttributeValues: { ...isFinished.values, ':pk': `TEAM#${team}`, ':prefix': 'SESSION#' },
        },
        limit,
      )
      return rows.flatMap(finishedOf)
    },

    /**
     * Marks a session as going; from then on it is there for nobody, and it is due until it is gone. False, with
     * nothing changed, when it is not at the revision that was seen or retention may not remove it.
     */
    beginRemoval: ({ team, id, revision }: Omit<Finished, 'finished_at'>): Promise<boolean> =>
      wasMade(
        dynamo.send(
          new UpdateCommand({
            TableName: table,
            Key: itemKey.session(team, id),
            // The new revision refuses whoever read the item before and would write it back without the mark.
            UpdateExpression:
              'SET removing_at = :now, due_at = :now, due_shard = :shard, revision = revision + :one',
            ConditionExpression: `revision = :seen AND ${isFinished.expression}`,
            ExpressionAttributeNames: isFinished.names,
            ExpressionAttributeValues: {
              ...isFinished.values,
              ...{
                ':now': new Date(clock()).toISOString(),
                ':shard': dueShard(id),
                ':seen': revision,
                ':one': 1,
              },
            },
          }),
        ),
      ),

    /** What is left of a session that is going; null when none is. `repo` is null when its row does not tell. */
    removing: async ({ team, id }: Id): Promise<{ repo: string | null } | null> => {
      const answer = await dynamo.send(
        new GetCommand({
          TableName: table,
          Key: itemKey.session(team, id),
          ProjectionExpression: 'removing_at, document.repo',
          ConsistentRead: true,
        }),
      )
      const { data } = removingSchema.safeParse(answer.Item)
      return data ? { repo: data.document?.repo ?? null } : null
    },

    /** Removes the row of a session that is going; harmless when it is gone. */
    endRemoval: ({ team, id }: Id): Promise<boolean> =>
      wasMade(
        dynamo.send(
          new DeleteCommand({
            TableName: table,
            Key: itemKey.session(team, id),
            ConditionExpression: 'attribute_exists(removing_at)',
          }),
        ),
      ),
  }
}
