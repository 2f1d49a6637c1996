import {
  CreateTableCommand,
  type CreateTableCommandInput,
  type DynamoDBClient,
  ResourceInUseException,
  waitUntilTableExists,
} from '@aws-sdk/client-dynamodb'
import { indexes } from './keys.ts'

/** The table's shape; the CDK app and the embedded stack both make it from here. */
export const tableShape = {
  partition: 'pk',
  sort: 'sk',
  ttl: 'expires_at',
  indexes: [indexes.due, indexes.needsYou],
} as const

export const createTableInput = (table: string): CreateTableCommandInput => {
  const attributes = ['pk', 'sk', ...tableShape.indexes.flatMap((index) => [index.partition, index.sort])]
  return {
    TableName: table,
    BillingMode: 'PAY_PER_REQUEST',
    AttributeDefinitions: [...new Set(attributes)].map((name) => ({
      AttributeName: name,
      AttributeType: 'S',
    })),
    KeySchema: [
      { AttributeName: tableShape.partition, KeyType: 'HASH' },
      { AttributeName: tableShape.sort, KeyType: 'RANGE' },
    ],
    GlobalSecondaryIndexes: tableShape.indexes.map((index) => ({
      IndexName: index.name,
      KeySchema: [
        { AttributeName: index.partition, KeyType: 'HASH' },
        { AttributeName: index.sort, KeyType: 'RANGE' },
      ],
      Projection: { ProjectionType: 'KEYS_ONLY' },
    })),
  }
}

/** Makes the table where it is missing; a table that is there is left alone. */
export const ensureTable = async (client: DynamoDBClient, table: string): Promise<void> => {
  try {
    await client.send(new CreateTableCommand(createTableInput(table)))
  } catch (error) {
    if (!(error instanceof ResourceInUseException)) throw error
  }
  await waitUntilTableExists({ client, maxWaitTime: 30, minDelay: 1, maxDelay: 1 }, { TableName: table })
}
