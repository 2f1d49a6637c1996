import { join } from 'node:path'
import type { SessionItem } from '../../../lib/session/item.ts'
import { createBlobs } from '../../../lib/store/blobs.ts'
import type { Clients } from '../../../lib/store/clients.ts'
import { createJournals } from '../../../lib/store/journals.ts'
import { objectKey } from '../../../lib/store/keys.ts'
import { createPayloads } from '../../../lib/store/payloads.ts'
import { foundSeal } from '../../../lib/store/rebuild/found-seal.ts'
import { putRebuilt, rebuild } from '../../../lib/store/rebuild/rebuild.ts'
import { type Shortfall, shortfallOf } from './behind.ts'
import { requireOwnTable } from './identity.ts'
import { type KeptJournal, keptJournals } from './journal-folders.ts'

/** Journals that are held against their rows at the same time. */
const atOnce = 16

type Home = {
  home: string
  clients: Pick<Clients, 'dynamo' | 's3'>
  table: string
  bucket: string
  log: (line: string) => void
}

const shortfalls = async (table: { dynamo: Clients['dynamo']; table: string }, kept: KeptJournal[]) => {
  const found: Shortfall[] = []
  const queue = kept.values()
  const run = async () => {
    for (const one of queue) {
      const shortfall = await shortfallOf(table, one)
      if (shortfall) found.push(shortfall)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, run))
  return found
}

const rebuilder = ({ clients, bucket }: Home) => {
  const blobs = createBlobs(clients.s3, bucket)
  const parts = {
    journals: createJournals(clients.s3, bucket, blobs, async () => null),
    payloads: createPayloads(blobs),
  }
  /** The seal of a journal whose first segments are gone; null where all are there. */
  const sealOf = async ({ team, id, first, sealed }: KeptJournal, time: string) => {
    if (first === 0) return null
    for (const sha256 of sealed) {
      const object = await blobs.bytes(objectKey.sealed(team, id, sha256))
      const seal = object && (await foundSeal(sha256, object, time))
      if (seal) return seal
    }
    return null
  }
  return async ({ kept, before }: Shortfall): Promise<SessionItem> => {
    const time = new Date().toISOString()
    const seal = await sealOf(kept, time)
    return rebuild(parts, kept, {
      seal,
      before,
      time,
      last: Math.max(kept.last.sequence, seal?.through ?? 0),
    })
  }
}

/** What a write that came late left of a session which was removed: nobody can go on from it, and nobody misses it. */
const isRest = ({ before, kept: { first, sealed } }: Shortfall): boolean =>
  before === null && first !== 0 && sealed.length === 0

const nameOf = ({ kept: { team, id }, why }: Shortfall): string => `${id} of team ${team}: ${why}`

/**
 * Holds a data folder against itself before anything of it is served: its identity against its table's, and each
 * session's journal against its row. A session whose row is missing or behind is rebuilt from its journal and named on
 * the log; so is what has neither row nor beginning, and it stays. Throws an Error with the list, and nothing changed, when the table is another's or a session can't be rebuilt.
 */
export const holdAgainstItself = async (home: Home): Promise<void> => {
  const { clients, table, log } = home
  const kept: KeptJournal[] = []
  for await (const one of keptJournals(join(home.home, 's3', 'buckets', home.bucket))) kept.push(one)
  const rows = { dynamo: clients.dynamo, table }
  await requireOwnTable(rows, join(home.home, 'identity'), kept.length > 0)
  const short = await shortfalls(rows, kept)
  const make = rebuilder(home)
  const made: SessionItem[] = []
  const lost: string[] = []
  for (const one of short) {
    if (isRest(one)) {
      log(`left as it is: ${nameOf(one)}, and so is the beginning of its journal`)
      continue
    }
    try {
      made.push(await make(one))
    } catch (error) {
      lost.push(`${nameOf(one)}, and it can’t be rebuilt: ${error instanceof Error ? error.message : error}`)
    }
  }
  if (lost.length > 0)
    throw new Error(
      `the data folder is damaged. Nothing was changed; put it back from a copy, or move the folders of these sessions ` +
        `out of ${join(home.home, 's3')}:\n${lost.join('\n')}`,
    )
  for (const item of made) await putRebuilt(clients.dynamo, table, item)
  for (const one of short) if (!isRest(one)) log(`rebuilt from its journal: ${nameOf(one)}`)
}
