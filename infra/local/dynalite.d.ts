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
  type Done<Value = void> = (error?: Error | null, value?: Value) => void
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
  interface Values {
    next(): Promise<Item | undefined>
  }
  /** LevelDB; `close` waits for what is in hand and is final, `close._original` lets it be opened again. */
  interface Database {
    readonly status: 'opening' | 'open' | 'closing' | 'closed'
    open(): Promise<void>
    close: { (): Promise<void>; _original(): Promise<void> }
    get(key: string, done: Done<Item>): void
    put(key: string, value: Item, done: Done): void
    del(key: string, done: Done): void
    batch(writes: Write[], done: Done): void
    values(options: object): Values
  }
  interface Store {
    db: Database
  }

  const functions: {
    /** The database in a folder; `db.open()` rejects when it can't be held. */
    create(options: { path?: string }): Store
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
  export type { Database, Done, Item, Store, Table, Write }
}
