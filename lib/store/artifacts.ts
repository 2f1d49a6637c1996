import { createHash, hash } from 'node:crypto'
import { GatehouseError } from '../errors.ts'
import { digestIn } from '../session/artifact-name.ts'
import type { Blobs } from './blobs.ts'
import { objectKey } from './keys.ts'

type Id = { team: string; id: string }

const changed = (name: string) =>
  new GatehouseError('journal_damaged', `artifact ${name} is not what was written`)

/** Artifacts of sessions. One whose name says what it holds is never given out as anything else. */
export const createArtifacts = (blobs: Blobs) => ({
  /** The text of an artifact; null where there is none. Throws `journal_damaged` for one that was changed. */
  text: async ({ team, id }: Id, name: string): Promise<string | null> => {
    const bytes = await blobs.bytes(objectKey.artifact(team, id, name))
    if (bytes === null) return null
    const digest = digestIn(name)
    if (digest !== null && hash('sha256', bytes) !== digest) throw changed(name)
    return bytes.toString()
  },

  /** The bytes of an artifact; null where there is none. The stream breaks off before its end where it was changed. */
  stream: async ({ team, id }: Id, name: string): Promise<ReadableStream | null> => {
    const source = await blobs.stream(objectKey.artifact(team, id, name))
    const digest = digestIn(name)
    if (source === null || digest === null) return source
    const seen = createHash('sha256')
    const checked = new TransformStream<Uint8Array, Uint8Array>({
      transform: (chunk, controller) => {
        seen.update(chunk)
        controller.enqueue(chunk)
      },
      flush: () => {
        if (seen.digest('hex') !== digest) throw changed(name)
      },
    })
    return source.pipeThrough(checked)
  },
})
