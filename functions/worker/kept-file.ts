import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'

/** The SHA-256 of a file, in hex. */
export const sha256Of = async (file: string): Promise<string> => {
  const hash = createHash('sha256')
  await pipeline(createReadStream(file), hash)
  return hash.digest('hex')
}

/** What a checkpoint records of its bundle: the name it is stored under and what its bytes hash to. */
export const bundleRecord = async (name: string, file: string | null) =>
  file === null
    ? { bundle: null, bundle_sha256: null }
    : { bundle: name, bundle_sha256: await sha256Of(file) }
