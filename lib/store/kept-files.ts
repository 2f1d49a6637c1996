import { GatehouseError } from '../errors.ts'
import type { Entry } from '../journal/entry.ts'
import { filesNamedBy, type NamedFile } from '../journal/named-files.ts'
import type { SessionItem } from '../session/item.ts'
import { reviewBodySchema } from '../session/protocol.ts'
import { objectKey } from './keys.ts'
import type { Platform } from './platform.ts'
import { provenEntries } from './proven-entries.ts'

type Id = { team: string; id: string }
type Parts = Pick<Platform, 'artifacts' | 'blobs'>
type Named = Pick<Entry, 'type' | 'data'>

const requireBundle = async ({ blobs }: Parts, { team, id }: Id, { name, sha256 }: NamedFile) => {
  if ((await blobs.sha256(objectKey.bundle(team, id, name))) !== sha256)
    throw new GatehouseError('journal_damaged', `bundle ${name} is missing or not what was written`)
}

/** The artifacts that a file stands for: itself, and with a review's body the patch that was shown with it. */
const artifactsOf = async ({ artifacts }: Parts, id: Id, { name, review }: NamedFile): Promise<string[]> =>
  review ? [name, (await artifacts.json(id, name, reviewBodySchema)).patch_artifact] : [name]

const requireFile = async (parts: Parts, id: Id, file: NamedFile): Promise<void> => {
  if (file.folder === 'bundles') return requireBundle(parts, id, file)
  for (const name of await artifactsOf(parts, id, file)) await parts.artifacts.prove(id, name)
}

/**
 * Proves the files that an entry, with its data in place, speaks of by their hashes. Throws `journal_damaged` for the
 * first that is changed or missing.
 */
export const proveFiles = async (parts: Parts, id: Id, entry: Named): Promise<void> => {
  for (const file of filesNamedBy(entry)) await requireFile(parts, id, file)
}

/**
 * Whether the journal says that an artifact was kept, so that it is lost where it is not there. The item has to have
 * nothing in its outbox.
 */
export const isNamed = async (
  parts: Parts & Pick<Platform, 'journals' | 'payloads'>,
  item: SessionItem,
  name: string,
): Promise<boolean> => {
  for await (const entry of provenEntries(parts, item)) {
    if (entry.data_ref?.artifact === name) return true
    for (const file of filesNamedBy(entry))
      if (file.name === name || (await artifactsOf(parts, item, file)).includes(name)) return true
  }
  return false
}
