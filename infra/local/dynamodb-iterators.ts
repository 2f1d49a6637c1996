import { AbstractValueIterator } from 'abstract-level'

/**
 * Lets dynalite close what it has read: it ends a query by the iterator's `return`, which the database below does not
 * have, so that each query would keep its iterator, and with it every version of the data since then, for ever.
 */
export function closeIteratorsWhenRead(): void {
  Object.defineProperty(AbstractValueIterator.prototype, 'return', {
    configurable: true,
    value(this: { close(): Promise<void> }) {
      return this.close()
    },
  })
}
