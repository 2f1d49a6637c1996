import { sha256Of } from '../../lib/kept-file.ts'

/** What a checkpoint records of its bundle: the name it is stored under and what its bytes hash to. */
export const bundleRecord = async (name: string, file: string | null) =>
  file === null
    ? { bundle: null, bundle_sha256: null }
    : { bundle: name, bundle_sha256: await sha256Of(file) }
