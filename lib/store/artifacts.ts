import { createHash, hash } from 'node:crypto'
import type { z } from 'zod'
import { digestIn } from '../artifact-name.ts'
import { GatehouseError } from '../errors.ts'
import type { Blobs } from './blobs.ts'
import { objectKey } from './keys.ts'

type Id = { team: string; id: string }

const damaged = (name: string, how: string) =>
  new GatehouseError('journal_damaged', `artifact ${name} ${how}`)
const changed = (name: string) => damaged(name, 'is not what was written')

const jsonIn = (bytes: Buffer): unknown => {
  try {
    return JSON.parse(bytes.toString())
  } catch {
    return undefined
  }
}

/**
 * Artifacts that the session's item or journal names, so that one which is missing is lost. One whose name says what it
 * holds is never given out as anything else. All of it throws `journal_damaged`.
 */
export const createArtifacts = (blobs: Blobs) => {
  /** Shows that an artifact is there and, as far as its name says, what was written. */
  const prove = async ({ team, id }: Id, name: string): Promise<void> => {
    const found = await blobs.sha256(objectKey.artifact(team, id, name))
    if (found === null) throw damaged(name, 'is missing')
    const digest = digestIn(name)
    if (digest !== null && digest !== found) throw changed(name)
  }

  return {
    prove,

    /** What an artifact says in JSON. */
    json: async <Schema extends z.ZodType>(
      { team, id }: Id,
      name: string,
      schema: Schema,
    ): Promise<z.infer<Schema>> => {
      const bytes = await blobs.bytes(objectKey.artifact(team, id, name))
      if (bytes === null) throw damaged(name, 'is missing')
      const digest = digestIn(name)
      if (digest !== null && hash('sha256', bytes) !== digest) throw changed(name)
      const read = schema.safeParse(jsonIn(bytes))
      if (!read.success) throw damaged(name, 'does not hold what the session says')
      return read.data
    },

    /** The bytes of an artifact, once they were proven. The stream breaks off where they are changed meanwhile. */
    stream: async (id: Id, name: string): Promise<ReadableStream> => {
      await prove(id, name)
      const source = await blobs.stream(objectKey.artifact(id.team, id.id, name))
      if (source === null) throw damaged(name, 'is missing')
      const digest = digestIn(name)
      const seen = createHash('sha256')
      const checked = new TransformStream<Uint8Array, Uint8Array>({
        transform: (chunk, controller) => {
          seen.update(chunk)
          controller.enqueue(chunk)
        },
        flush: () => {
          if (digest !== null && seen.digest('hex') !== digest) throw changed(name)
        },
      })
      return source.pipeThrough(checked)
    },
  }
}
