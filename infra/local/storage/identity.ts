import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { type DynamoDBDocumentClient, GetCommand, PutCommand } from '@aws-sdk/lib-dynamodb'
import { z } from 'zod'
import { writePrivate } from '../doors/key-pair.ts'

const key = { pk: 'HOME', sk: 'IDENTITY' }
const identity = z.uuid()

const inFile = async (file: string): Promise<string | null> => {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
    return null
  })
  if (text === null) return null
  const { data } = identity.safeParse(text.trim())
  if (data) return data
  throw new Error(
    `${file} does not hold the identity of a data folder. Nothing was changed; put it back from a copy.`,
  )
}

/**
 * Holds a home's identity, which is in a file of its own, against the one in its table. A home that has none yet gets
 * one. Throws, with nothing changed, when the table is another home's, or a new one although there are sessions.
 */
export const requireOwnTable = async (
  { dynamo, table }: { dynamo: DynamoDBDocumentClient; table: string },
  file: string,
  hasSessions: boolean,
): Promise<void> => {
  const answer = await dynamo.send(new GetCommand({ TableName: table, Key: key, ConsistentRead: true }))
  const inTable = z.object({ id: identity }).safeParse(answer.Item).data?.id ?? null
  const own = await inFile(file)
  if (own !== null && own === inTable) return
  if (own !== null && inTable !== null)
    throw new Error(
      `the database is that of another data folder: it says ${inTable}, and ${file} says ${own}. ` +
        'Nothing was changed; put the folder dynamodb that belongs to it back.',
    )
  if (own !== null && hasSessions)
    throw new Error(
      `the database is a new one, but there are sessions of the data folder ${own}. ` +
        'Nothing was changed; put the folder dynamodb back from a copy.',
    )
  const id = own ?? inTable ?? randomUUID()
  // The row first: a home with a file and no row would look as if its database had been lost.
  if (inTable === null) await dynamo.send(new PutCommand({ TableName: table, Item: { ...key, id } }))
  if (own === null) await writePrivate(file, `${id}\n`)
}
