import type { z } from 'zod'
import { fromSnapshotText } from '../journal/snapshot.ts'
import type { Blobs } from './blobs.ts'

/** One kind of a session's snapshots: where they are, and what they hold. */
type Kind<Value> = {
  readonly prefix: string
  readonly key: (sequence: number) => string
  readonly schema: z.ZodType<Value>
}

/**
 * The snapshots that stand at or before a sequence, newest first; one that is not as it was written is left out. Each
 * listing looks over the next `window` sequences further back.
 */
export async function* snapshotsBefore<Value>(
  blobs: Blobs,
  { prefix, key, schema }: Kind<Value>,
  sequence: number,
  window: number,
): AsyncGenerator<Value> {
  for (let last = sequence; last >= 0; last -= window) {
    const first = last - window + 1
    const keys = await blobs.listAfter(prefix, first > 0 ? key(first - 1) : prefix)
    for (const found of keys.filter((one) => one <= key(last)).reverse()) {
      const snapshot = fromSnapshotText(schema, (await blobs.get(found)) ?? '')
      if (snapshot !== null) yield snapshot
    }
  }
}
