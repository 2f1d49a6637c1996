import dynalite, { type Item, type Table, type Write } from 'dynalite/db/index.js'

/**
 * Makes every write of an item and its index entries one atomic batch. Left alone, dynalite deletes the old entries,
 * puts the new ones and then writes the item, each by itself: a process killed in between leaves an item that its index
 * no longer finds.
 */
export function writeIndexesAtomically(): void {
  dynalite.updateIndexes = (store, table, existing, item, done) => {
    const indexed = indexWrites(table, existing, item)
    if (indexed.length === 0) done()
    else store.db.batch([...indexed, ...itemWrite(table, existing, item)], done)
  }
}

function indexWrites(table: Table, existing: Item | undefined, item: Item | null): Write[] {
  const kinds = [
    { kind: 'local', indexes: table.LocalSecondaryIndexes ?? [] },
    { kind: 'global', indexes: table.GlobalSecondaryIndexes ?? [] },
  ]
  return kinds.flatMap(({ kind, indexes }) => {
    const { puts, deletes } = dynalite.getIndexActions(indexes, existing, item, table)
    const keyIn = (index: string, key: string) => `index-${kind}~${table.TableName}~${index}~${key}`
    return [
      ...deletes.map(({ index, key }) => ({ type: 'del' as const, key: keyIn(index, key) })),
      ...puts.map((put) => ({ type: 'put' as const, key: keyIn(put.index, put.key), value: put.item })),
    ]
  })
}

function itemWrite(table: Table, existing: Item | undefined, item: Item | null): Write[] {
  const keyed = item ?? existing
  if (!keyed) return []
  const key = `item-${table.TableName}~${dynalite.createKey(keyed, table)}`
  return [item ? { type: 'put', key, value: item } : { type: 'del', key }]
}
