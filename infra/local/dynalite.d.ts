declare module 'dynalite' {
  import type { Server } from 'node:http'

  /** An HTTP server that speaks DynamoDB; `path` is a LevelDB folder, absent for memory. */
  function dynalite(options: {
    path?: string
    createTableMs?: number
    deleteTableMs?: number
    updateTableMs?: number
  }): Server

  export default dynalite
}

declare module 'dynalite/db/index.js' {
  type Item = Record<string, Record<string, unknown>>
  type Done = (error?: Error | null) => void
  type Write = { type: 'put'; key: string; value: Item } | { type: 'del'; key: string }

  interface Index {
    IndexName: string
    KeySchema: object[]
  }
  interface Table {
    TableName: string
    GlobalSecondaryIndexes?: Index[]
    LocalSecondaryIndexes?: Index[]
  }
  interface Store {
    db: { batch(writes: Write[], done: Done): void }
  }

  const functions: {
    /** The database in a folder; `db.open()` rejects when it can't be held. */
    create(options: { path: string }): { db: { open(): Promise<void>; close(): Promise<void> } }
    createKey(item: Item, table: Table): string
    /** What one write of an item means for some indexes, by keys inside each index. */
    getIndexActions(
      indexes: Index[],
      existing: Item | undefined,
      item: Item | null,
      table: Table,
    ): { puts: { index: string; key: string; item: Item }[]; deletes: { index: string; key: string }[] }
    /** Called while the item is locked and its condition holds, just before the item itself is written. */
    updateIndexes(store: Store, table: Table, existing: Item | undefined, item: Item | null, done: Done): void
  }
  export default functions
  export type { Item, Store, Table, Write }
}
