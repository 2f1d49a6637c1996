import { BatchGetCommand, type DynamoDBDocumentClient, QueryCommand } from '@aws-sdk/lib-dynamodb'
import type { z } from 'zod'
import { runtimeSchema, sessionItemSchema } from '../session/item.ts'
import type { State } from '../session/states.ts'
import { indexes, itemKey } from './keys.ts'
import { type Id, idOf } from './session-rows.ts'

/** What a list shows of a session: its document, and of the rest what says how it stands. */
export const listedSessionSchema = sessionItemSchema
  .pick({ team: true, id: true, version: true, document: true, journal_head: true })
  .extend({ runtime: runtimeSchema.pick({ compute: true, queued_at: true }).strip() })
  .strip()
export type ListedSession = z.infer<typeof listedSessionSchema>

/** What sessions are picked by; each that is named has to hold. */
export type SessionFilter = {
  state?: State | undefined
  repo?: string | undefined
  needsYou?: boolean | undefined
  label?: { name: string; value: string } | undefined
}

const sessionPrefix = 'SESSION#'
/** Rows that a query with a filter looks at; what it holds back costs no transport. */
const rowsPerQuery = 500
const shownNames = { '#team': 'team' }
const shown = 'pk, sk, #team, id, version, document, journal_head, runtime.compute, runtime.queued_at'

type Part = { condition: string; names?: Record<string, string>; values?: Record<string, unknown> }

/** The parts of a filter as the table's own conditions: what does not match stays there. Pure. */
const partsOf = ({ state, repo, needsYou, label }: SessionFilter): Part[] => [
  { condition: 'attribute_not_exists(removing_at)' },
  ...(state === undefined
    ? []
    : [{ condition: 'document.#state = :state', names: { '#state': 'state' }, values: { ':state': state } }]),
  ...(repo === undefined ? [] : [{ condition: 'document.repo = :repo', values: { ':repo': repo } }]),
  ...(needsYou === undefined ? [] : [{ condition: `attribute_${needsYou ? '' : 'not_'}exists(needs_team)` }]),
  ...(label === undefined
    ? []
    : [
        {
          condition: 'document.labels.#label = :label',
          names: { '#label': label.name },
          values: { ':label': label.value },
        },
      ]),
]

/** Queries that one page costs at most: a filter that passes over more answers with what it found and where it got to. */
const maxQueries = 20

/** Rows that do not read as sessions; a list leaves them out and names them. */
export type SessionPage = { items: ListedSession[]; damaged: Id[]; next: string | null }

const readRows = (rows: readonly Record<string, unknown>[]): Pick<SessionPage, 'items' | 'damaged'> => {
  const items: ListedSession[] = []
  const damaged: Id[] = []
  for (const row of rows) {
    const { data } = listedSessionSchema.safeParse(row)
    if (data) items.push(data)
    else damaged.push(idOf(row))
  }
  return { items, damaged }
}

type Options = {
  limit: number
  /** The session at which an earlier page ended; older ones follow. */
  before: string | null
  filter: SessionFilter
}

/** Pages of a team's sessions, newest first. */
export const createSessionPages = (dynamo: DynamoDBDocumentClient, table: string) => {
  const startAt = (team: string, before: string | null) =>
    before === null ? {} : { ExclusiveStartKey: itemKey.session(team, before) }

  /** One consistent query; its filter may leave fewer rows than it reads. */
  const query = async (team: string, { before, filter, limit }: Options) => {
    const parts = partsOf(filter)
    const answer = await dynamo.send(
      new QueryCommand({
        TableName: table,
        ConsistentRead: true,
        ProjectionExpression: shown,
        KeyConditionExpression: 'pk = :pk AND begins_with(sk, :prefix)',
        FilterExpression: parts.map(({ condition }) => condition).join(' AND '),
        ExpressionAttributeNames: Object.assign({}, shownNames, ...parts.map(({ names }) => names ?? {})),
        ExpressionAttributeValues: Object.assign(
          { ':pk': `TEAM#${team}`, ':prefix': sessionPrefix },
          ...parts.map(({ values }) => values ?? {}),
        ),
        ScanIndexForward: false,
        Limit: limit,
        ...startAt(team, before),
      }),
    )
    const { LastEvaluatedKey: last } = answer
    return { rows: answer.Items ?? [], next: last === undefined ? null : idOf(last).id }
  }

  /** The sessions that need somebody, from the index of just those; each is read as it is now. */
  const needing = async (team: string, { before, limit }: Options): Promise<SessionPage> => {
    const { name, partition } = indexes.needsYou
    const answer = await dynamo.send(
      new QueryCommand({
        ...{ TableName: table, IndexName: name, ScanIndexForward: false, Limit: limit },
        KeyConditionExpression: '#p = :p AND begins_with(sk, :prefix)',
        ExpressionAttributeNames: { '#p': partition },
        ExpressionAttributeValues: { ':p': team, ':prefix': sessionPrefix },
        ...(before === null
          ? {}
          : { ExclusiveStartKey: { ...itemKey.session(team, before), [partition]: team } }),
      }),
    )
    const ids = (answer.Items ?? []).map(idOf)
    const rows = await batch(team, ids)
    const { LastEvaluatedKey: last } = answer
    return { ...readRows(rows), next: last === undefined ? null : idOf(last).id }
  }

  /** The rows of some sessions that still need somebody, in the order of their ids. */
  const batch = async (team: string, ids: readonly Id[]): Promise<Record<string, unknown>[]> => {
    const rows = new Map<string, Record<string, unknown>>()
    let keys: Record<string, unknown>[] = ids.map(({ id }) => itemKey.session(team, id))
    while (keys.length > 0) {
      const answer = await dynamo.send(
        new BatchGetCommand({
          RequestItems: {
            [table]: {
              Keys: keys,
              ConsistentRead: true,
              ProjectionExpression: `${shown}, needs_team, removing_at`,
              ExpressionAttributeNames: shownNames,
            },
          },
        }),
      )
      for (const row of answer.Responses?.[table] ?? []) rows.set(idOf(row).id, row)
      keys = answer.UnprocessedKeys?.[table]?.Keys ?? []
    }
    return ids.flatMap(({ id }) => {
      const row = rows.get(id)
      return row && 'needs_team' in row && !('removing_at' in row) ? [row] : []
    })
  }

  return {
    /** A page of sessions that match; `next` is where the following one begins, null behind the last. */
    page: async (team: string, options: Options): Promise<SessionPage> => {
      const { limit, filter } = options
      const { needsYou, ...others } = filter
      if (needsYou && Object.values(others).every((one) => one === undefined)) return needing(team, options)
      const found: Record<string, unknown>[] = []
      let before = options.before
      for (let queries = 0; queries < maxQueries; queries++) {
        const { rows, next } = await query(team, {
          filter,
          before,
          limit: partsOf(filter).length > 1 ? rowsPerQuery : limit,
        })
        found.push(...rows)
        before = next
        if (found.length >= limit || next === null) break
      }
      const last = found[limit - 1]
      const next = found.length > limit && last ? idOf(last).id : before
      return { ...readRows(found.slice(0, limit)), next }
    },
  }
}
