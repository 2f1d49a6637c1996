import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { nameOfContent } from './artifact-name.ts'

/** The SHA-256 of a file, in hex. */
export const sha256Of = async (file: string): Promise<string> => {
  const hash = createHash('sha256')
  await pipeline(createReadStream(file), hash)
  return hash.digest('hex')
}

/** A whole output as an artifact: under a name by which the entry that names it proves its bytes. */
export type KeptLog = { name: string; file: string }

/** The log that a file is; the file has to be written to its end. */
export const keptLog = async (base: string, file: string): Promise<KeptLog> => ({
  name: nameOfContent(base, await sha256Of(file), 'log'),
  file,
})
