import { hash } from 'node:crypto'
import type { DataRef } from './entry.ts'

/** What the names of these artifacts begin with; nobody else may write one. */
export const reservedPrefix = 'data-'

/** The reference to data that is kept beside the journal, by its canonical text; equal data has the same one. */
export const refOf = (text: string): DataRef => {
  const sha256 = hash('sha256', text)
  return { artifact: `${reservedPrefix}${sha256}.json`, bytes: Buffer.byteLength(text), sha256 }
}

/** Whether an artifact is data that entries refer to. */
export const isDataArtifact = (name: string): boolean => /^data-[0-9a-f]{64}\.json$/.test(name)
