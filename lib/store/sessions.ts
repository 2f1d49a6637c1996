import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { ConditionalCheckFailedException } from '@aws-sdk/client-dynamodb'
import {
  type DynamoDBDocumentClient,
  GetCommand,
  PutCommand,
  type PutCommandInput,
  UpdateCommand,
} from '@aws-sdk/lib-dynamodb'
import { z } from 'zod'
import { GatehouseError, isError } from '../errors.ts'
import { limits } from '../limits.ts'
import { dueAt } from '../session/due.ts'
import { needsYou } from '../session/gates.ts'
import { type Change, changeItem, createItem, type SessionItem, sessionItemSchema } from '../session/item.ts'
import type { Journals } from './journals.ts'
import { allDueShards, dueShard, indexes, itemKey } from './keys.ts'
import { createSessionPages } from './session-pages.ts'
import { createRemovals } from './session-removals.ts'
import { type Id, idOf, rowReader, wasMade } from './session-rows.ts'
import { createTurns } from './turns.ts'

export type Clock = () => number

/** Decides what is written on an item, which may take a look at what belongs to just that item. */
export type Decide = (item: SessionItem) => Change | null | Promise<Change | null>

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

/** The item of a row; what else the row holds is for its keys and indexes. */
const stored = sessionItemSchema.strip()
/** Throws `journal_damaged` for a row that is not an item: it is told on the session's own calls and nowhere else. */
const parse = (id: Id, attributes: Record<string, unknown>): SessionItem => {
  const { data, error } = stored.safeParse(attributes)
  if (data) return data
  const at = error.issues.map(({ path }) => path.join('.')).slice(0, limits.namedPaths)
  throw new GatehouseError(
    'journal_damaged',
    `the row of session ${id.id} is damaged at ${at.join(', ')}; its journal may be whole: put the row back from a copy`,
    { cause: error },
  )
}
/** A session that is to be looked at; `due_at` as it stands in the row. */
export type Due = Id & { due_at: string }
const dueOf = (attributes: Record<string, unknown>): Due => ({
  ...idOf(attributes),
  ...z.object({ due_at: z.string() }).parse(attributes),
})
const byDueTime = (a: Due, b: Due): number =>
  a.due_at === b.due_at ? (a.id < b.id ? -1 : 1) : a.due_at < b.due_at ? -1 : 1

/** A random pause, as long for who has lost ten races as for who has lost one: nobody falls behind. */
const pause = () => {
  const { least, most } = limits.contention.pauseMs
  return sleep(least + Math.random() * (most - least))
}

/** Session items. Every write is one conditional write; of any number of racers exactly one wins. */
export const createSessions = (
  dynamo: DynamoDBDocumentClient,
  table: string,
  clock: Clock,
  journals: Pick<Journals, 'after'>,
) => {
  const firstRows = rowReader(dynamo, table)
  const inTurn = createTurns(limits.contention.turnMs)

  const get = async (id: Id): Promise<SessionItem | null> => {
    const answer = await dynamo.send(
      new GetCommand({ TableName: table, Key: itemKey.session(id.team, id.id), ConsistentRead: true }),
    )
    return answer.Item && !('removing_at' in answer.Item) ? parse(id, answer.Item) : null
  }

  const require = async (id: Id): Promise<SessionItem> => {
    const item = await get(id)
    if (!item) throw new GatehouseError('not_found', `there is no session ${id.id}`)
    return item
  }

  /**
   * The item as it is now if the write of `next` has been made; null if it has not. A write with facts is known by the
   * hash of its last entry, wherever that is by now. One without is known while nothing was written since: after that
   * there is no telling, and deciding it anew does what the repeat of any call does.
   */
  const findMade = async (next: SessionItem, wroteFacts: boolean): Promise<SessionItem | null> => {
    const there = await get(next)
    if (!there) return null
    if (!wroteFacts) return isDeepStrictEqual(there, next) ? there : null
    const { sequence } = next.journal_head
    const waiting = there.outbox.find((line) => line.sequence === sequence)
    if (waiting) return next.outbox.some(({ line }) => line === waiting.line) ? there : null
    // What has left the outbox is in the journal.
    const [entry] = there.journal_head.sequence < sequence ? [] : await journals.after(there, sequence - 1, 1)
    return entry?.hash === next.journal_head.hash ? there : null
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
        const isRepeat = (error.$metadata.attempts ?? 1) > 1
        const made = isRepeat ? await findMade(next, change.facts.length > 0) : null
        if (made) return made
        throw new GatehouseError('conflict', `session ${item.id} was changed by another write`, {
          cause: error,
        })
      }
      throw error
    }
    return next
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
     * Calls of one process for one session go one after another and race only with other processes. Throws
     * `unavailable`, with nothing changed, when others came first for too long.
     */
    update: async (id: Id, decide: Decide): Promise<SessionItem> => {
      const { ms } = limits.contention
      const giveUpAt = performance.now() + ms
      const isBusy = (cause?: unknown) =>
        new GatehouseError('unavailable', `session ${id.id} is being written by too many at once`, { cause })
      const raced = async (): Promise<SessionItem> => {
        for (;;) {
          const item = await require(id)
          const change = await decide(item)
          if (!change) return item
          try {
            return await commit(item, change)
          } catch (error) {
            if (!isError(error, 'conflict')) throw error
            if (performance.now() > giveUpAt) throw isBusy(error)
          }
          await pause()
        }
      }
      const turn = await inTurn(`${id.team}/${id.id}`, ms, raced)
      if (!turn) throw isBusy()
      return turn.result
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

    /** The first `limit` of a team's settled sessions whose journals are not sealed. Reads the team's rows up to there. */
    unsealed: async (team: string, limit: number): Promise<Due[]> => {
      const rows = await firstRows(
        {
          KeyConditionExpression: 'pk = :pk AND begins_with(sk, :prefix)',
          ProjectionExpression: 'pk, sk, due_at',
          FilterExpression:
            'runtime.settled = :true AND attribute_not_exists(removing_at)' +
            ' AND (attribute_not_exists(runtime.sealed) OR attribute_type(runtime.sealed, :null))',
          ExpressionAttributeValues: {
            ...{ ':pk': `TEAM#${team}`, ':prefix': 'SESSION#' },
            ...{ ':true': true, ':null': 'NULL' },
          },
        },
        limit,
      )
      return rows.map((row) => dueOf({ due_at: '', ...row }))
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

    ...createSessionPages(dynamo, table),
    ...createRemovals(dynamo, table, clock),
  }
}
