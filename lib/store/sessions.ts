import { ConditionalCheckFailedException } from '@aws-sdk/client-dynamodb'
import {
  DeleteCommand,
  type DynamoDBDocumentClient,
  GetCommand,
  PutCommand,
  type PutCommandInput,
  paginateQuery,
  QueryCommand,
  type QueryCommandInput,
  UpdateCommand,
} from '@aws-sdk/lib-dynamodb'
import pRetry, { AbortError } from 'p-retry'
import { z } from 'zod'
import { GatehouseError } from '../errors.ts'
import { needsYou } from '../session/gates.ts'
import {
  type Change,
  changeItem,
  createItem,
  dueAt,
  type SessionItem,
  sessionItemSchema,
} from '../session/item.ts'
import { terminalStates } from '../session/states.ts'
import { allDueShards, dueShard, indexes, itemKey } from './keys.ts'

type Id = { team: string; id: string }
export type Clock = () => number

/** The write of a whole session item, guarded by the revision it was read at; 0 means that it must not be there yet. */
export const sessionPut = (table: string, item: SessionItem, expectedRevision: number): PutCommandInput => {
  const due = dueAt(item)
  return {
    TableName: table,
    Item: {
      ...itemKey.session(item.team, item.id),
      ...item,
      ...(due ? { due_shard: dueShard(item.id), due_at: due } : {}),
      ...(needsYou(item.document) ? { needs_team: item.team } : {}),
    },
    ...(expectedRevision === 0
      ? { ConditionExpression: 'attribute_not_exists(pk)' }
      : {
          ConditionExpression: 'revision = :expected',
          ExpressionAttributeValues: { ':expected': expectedRevision },
        }),
  }
}

const stored = sessionItemSchema.loose()
const keyOf = z.object({ pk: z.string(), sk: z.string() })
const parse = (attributes: Record<string, unknown>): SessionItem => {
  const { team, id, revision, version, document, journal_head, outbox, runtime } = stored.parse(attributes)
  return { team, id, revision, version, document, journal_head, outbox, runtime }
}
const idOf = (attributes: Record<string, unknown>): Id => {
  const { pk, sk } = keyOf.parse(attributes)
  return { team: pk.slice('TEAM#'.length), id: sk.slice('SESSION#'.length) }
}

/** A session that is to be looked at; `due_at` as it stands in the row. */
export type Due = Id & { due_at: string }
const dueOf = (attributes: Record<string, unknown>): Due => ({
  ...idOf(attributes),
  ...z.object({ due_at: z.string() }).parse(attributes),
})
const byDueTime = (a: Due, b: Due): number =>
  a.due_at === b.due_at ? (a.id < b.id ? -1 : 1) : a.due_at < b.due_at ? -1 : 1

/** A session that retention may remove, at the revision at which it was seen. `finished_at` is its last change. */
export type Finished = Id & { revision: number; finished_at: string }
const finishedSchema = z.object({ revision: z.number(), document: z.object({ updated_at: z.string() }) })
const finishedOf = (attributes: Record<string, unknown>): Finished[] => {
  const { data } = finishedSchema.safeParse(attributes)
  return data ? [{ ...idOf(attributes), revision: data.revision, finished_at: data.document.updated_at }] : []
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

/** Whether a conditional write was made; false when its condition did not hold. */
const wasMade = async (write: Promise<unknown>): Promise<boolean> => {
  try {
    await write
    return true
  } catch (error) {
    if (error instanceof ConditionalCheckFailedException) return false
    throw error
  }
}

/** Session items. Every write is one conditional write; of any number of racers exactly one wins. */
export const createSessions = (dynamo: DynamoDBDocumentClient, table: string, clock: Clock) => {
  const get = async (id: Id): Promise<SessionItem | null> => {
    const answer = await dynamo.send(
      new GetCommand({ TableName: table, Key: itemKey.session(id.team, id.id), ConsistentRead: true }),
    )
    return answer.Item && !('removing_at' in answer.Item) ? parse(answer.Item) : null
  }

  const require = async (id: Id): Promise<SessionItem> => {
    const item = await get(id)
    if (!item) throw new GatehouseError('not_found', `there is no session ${id.id}`)
    return item
  }

  /** The item if it holds this line: the write went through, and only its answer was lost. */
  const find = async (
    id: Id,
    line: SessionItem['outbox'][number] | undefined,
  ): Promise<SessionItem | null> => {
    const there = await get(id)
    return there?.outbox.some((other) => other.line === line?.line) ? there : null
  }

  /**
   * One conditional write; throws `conflict` when another write came first. The SDK repeats a request whose answer it
   * did not get, so a refusal may be about this very write having been made.
   */
  const commit = async (item: SessionItem, change: Change): Promise<SessionItem> => {
    const now = clock()
    const next = changeItem(item, change, new Date(now).toISOString())
    try {
      await dynamo.send(new PutCommand(sessionPut(table, next, item.revision)))
    } catch (error) {
      if (error instanceof ConditionalCheckFailedException) {
        const repeated = (error.$metadata.attempts ?? 1) > 1 && change.facts.length > 0
        const own = repeated ? await find(item, next.outbox.at(-1)) : null
        if (own) return own
        throw new GatehouseError('conflict', `session ${item.id} was changed by another write`, {
          cause: error,
        })
      }
      throw error
    }
    return next
  }

  /** Pages of keys from an index or the table, hydrated by consistent reads. */
  const query = async (
    input: Omit<ConstructorParameters<typeof QueryCommand>[0], 'TableName'>,
  ): Promise<{ ids: Id[]; last: Record<string, unknown> | null }> => {
    const answer = await dynamo.send(new QueryCommand({ TableName: table, ...input }))
    return { ids: (answer.Items ?? []).map(idOf), last: answer.LastEvaluatedKey ?? null }
  }

  /** The first rows of a query, page by page until there are `limit` of them. */
  const firstRows = async (
    input: Omit<QueryCommandInput, 'TableName'>,
    limit: number,
  ): Promise<Record<string, unknown>[]> => {
    const rows: Record<string, unknown>[] = []
    for await (const page of paginateQuery({ client: dynamo }, { TableName: table, ...input })) {
      rows.push(...(page.Items ?? []))
      if (rows.length >= limit) break
    }
    return rows.slice(0, limit)
  }

  return {
    /** The item; null also from the moment on at which its removal has begun. */
    get,
    require,
    commit,

    /** Creates the item; the item that is there when a repeat or a racer made it before. */
    create: async (id: Id, change: Change): Promise<{ item: SessionItem; created: boolean }> => {
      const now = clock()
      const item = createItem(id, change, new Date(now).toISOString())
      try {
        await dynamo.send(new PutCommand(sessionPut(table, item, 0)))
        return { item, created: true }
      } catch (error) {
        if (error instanceof ConditionalCheckFailedException)
          return { item: await require(id), created: false }
        throw error
      }
    },

    /**
     * Reads, decides and writes until the write wins. `decide` is asked again after each lost race, so it sees what is
     * true now; its null means that there is nothing to write. What it throws ends the attempt with nothing changed.
     */
    update: (id: Id, decide: (item: SessionItem) => Change | null): Promise<SessionItem> =>
      pRetry(
        async () => {
          const item = await require(id).catch((error) => {
            throw new AbortError(error)
          })
          let change: Change | null
          try {
            change = decide(item)
          } catch (error) {
            throw new AbortError(error instanceof Error ? error : new Error(String(error)))
          }
          return change ? commit(item, change) : item
        },
        {
          retries: 50,
          minTimeout: 5,
          maxTimeout: 250,
          factor: 1.6,
          randomize: true,
          shouldRetry: ({ error }) => error instanceof GatehouseError && error.code === 'conflict',
        },
      ),

    /** A team's sessions, newest first, from a position that an earlier page ended at. */
    page: async (
      team: string,
      options: { limit: number; before: string | null; needsYou: boolean },
    ): Promise<{ items: SessionItem[]; more: boolean }> => {
      const names = options.needsYou
        ? { IndexName: indexes.needsYou.name, partition: indexes.needsYou.partition, value: team }
        : { IndexName: undefined, partition: 'pk', value: `TEAM#${team}` }
      const { ids, last } = await query({
        ...(names.IndexName ? { IndexName: names.IndexName } : { ProjectionExpression: 'pk, sk' }),
        KeyConditionExpression: '#p = :p AND sk BETWEEN :from AND :to',
        ExpressionAttributeNames: { '#p': names.partition },
        ExpressionAttributeValues: {
          ':p': names.value,
          ':from': 'SESSION#',
          // Keys sort by time, so everything before the cursor's id is older; `~` sorts behind every id.
          ':to': options.before ? `SESSION#${options.before}` : 'SESSION#~',
        },
        ScanIndexForward: false,
        Limit: options.limit + (options.before ? 1 : 0),
      })
      const older = ids.filter((id) => id.id !== options.before)
      const items = await Promise.all(older.slice(0, options.limit).map(get))
      return {
        items: items.filter((item) => item !== null),
        more: last !== null || older.length > options.limit,
      }
    },

    /**
     * Sessions whose deadline has come, or all live ones when `until` is null: oldest first, at most `limit`. Known by
     * their keys alone, so a row that does not parse is among them, and so is one whose removal is not finished.
     */
    due: async (until: number | null, limit: number): Promise<Due[]> => {
      const shards = await Promise.all(
        allDueShards.map((shard) =>
          firstRows(
            {
              IndexName: indexes.due.name,
              KeyConditionExpression: until === null ? '#p = :p' : '#p = :p AND due_at <= :until',
              ExpressionAttributeNames: { '#p': indexes.due.partition },
              ExpressionAttributeValues: {
                ':p': shard,
                ...(until === null ? {} : { ':until': new Date(until).toISOString() }),
              },
              Limit: limit,
            },
            limit,
          ),
        ),
      )
      return shards.flat().map(dueOf).toSorted(byDueTime).slice(0, limit)
    },

    /**
     * Puts off the next look at a session to `until` (epoch milliseconds) without reading its item, which may be one
     * that can't be read. False, with nothing changed, when its time is no longer the one that was seen.
     */
    postpone: ({ team, id, due_at }: Due, until: number): Promise<boolean> =>
      wasMade(
        dynamo.send(
          new UpdateCommand({
            TableName: table,
            Key: itemKey.session(team, id),
            UpdateExpression: 'SET due_at = :until',
            ConditionExpression: 'due_at = :seen',
            ExpressionAttributeValues: { ':until': new Date(until).toISOString(), ':seen': due_at },
          }),
        ),
      ),

    /**
     * The first `limit` of a team's sessions that retention may remove, in the order of their creation. Reads the
     * team's rows up to there, and of each only these attributes.
     */
    finished: async (team: string, limit: number): Promise<Finished[]> => {
      const rows = await firstRows(
        {
          KeyConditionExpression: 'pk = :pk AND begins_with(sk, :prefix)',
          ProjectionExpression: 'pk, sk, revision, document.updated_at',
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
