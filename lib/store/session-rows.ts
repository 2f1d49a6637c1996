import { ConditionalCheckFailedException } from '@aws-sdk/client-dynamodb'
import { type DynamoDBDocumentClient, paginateQuery, type QueryCommandInput } from '@aws-sdk/lib-dynamodb'
import { z } from 'zod'

export type Id = { team: string; id: string }

const keyOf = z.object({ pk: z.string(), sk: z.string() })
/** Whose row it is, by its keys alone. */
export const idOf = (attributes: Record<string, unknown>): Id => {
  const { pk, sk } = keyOf.parse(attributes)
  return { team: pk.slice('TEAM#'.length), id: sk.slice('SESSION#'.length) }
}

/** Whether a conditional write was made; false when its condition did not hold. */
export const wasMade = async (write: Promise<unknown>): Promise<boolean> => {
  try {
    await write
    return true
  } catch (error) {
    if (error instanceof ConditionalCheckFailedException) return false
    throw error
  }
}

/** Reads the first rows of a query, page by page until there are `limit` of them. */
export const rowReader =
  (dynamo: DynamoDBDocumentClient, table: string) =>
  async (input: Omit<QueryCommandInput, 'TableName'>, limit: number): Promise<Record<string, unknown>[]> => {
    const rows: Record<string, unknown>[] = []
    for await (const page of paginateQuery({ client: dynamo }, { TableName: table, ...input })) {
      rows.push(...(page.Items ?? []))
      if (rows.length >= limit) break
    }
    return rows.slice(0, limit)
  }
