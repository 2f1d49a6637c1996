import { hash } from 'node:crypto'
import { z } from 'zod'
import { GatehouseError } from '../errors.ts'
import { refOf } from '../journal/data-ref.ts'
import { canonical, type DataRef, type Entry } from '../journal/entry.ts'
import type { Blobs } from './blobs.ts'
import { objectKey } from './keys.ts'

type Id = { team: string; id: string }
type Data = Entry['data']

export type Payloads = ReturnType<typeof createPayloads>

const dataSchema = z.record(z.string(), z.unknown())

/** Data of entries that is too large for them: artifacts that are named by the hash of their bytes. */
export const createPayloads = (blobs: Blobs) => {
  /** The data that a reference stands for. Throws `journal_damaged` where it is missing or another. */
  const load = async ({ team, id }: Id, ref: DataRef): Promise<Data> => {
    const bytes = await blobs.bytes(objectKey.artifact(team, id, ref.artifact))
    if (bytes === null) throw new GatehouseError('journal_damaged', `artifact ${ref.artifact} is missing`)
    if (bytes.length !== ref.bytes || hash('sha256', bytes) !== ref.sha256)
      throw new GatehouseError('journal_damaged', `artifact ${ref.artifact} is not what its entry refers to`)
    return dataSchema.parse(JSON.parse(bytes.toString()))
  }

  return {
    /** Keeps data; harmless to repeat. */
    store: async ({ team, id }: Id, data: Data): Promise<DataRef> => {
      const text = canonical(data)
      const ref = refOf(text)
      await blobs.put(objectKey.artifact(team, id, ref.artifact), text)
      return ref
    },

    load,

    /** An entry with its data in place; the entry itself where it always was. Throws `journal_damaged`. */
    resolve: async (id: Id, entry: Entry): Promise<Entry> =>
      entry.data_ref ? { ...entry, data: await load(id, entry.data_ref) } : entry,
  }
}
