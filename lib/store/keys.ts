import { createHash } from 'node:crypto'

/** Keys of the table's items (DESIGN 4). */
export const itemKey = {
  session: (team: string, id: string) => ({ pk: `TEAM#${team}`, sk: `SESSION#${id}` }),
  idempotency: (team: string, key: string) => ({ pk: `TEAM#${team}`, sk: `IDEMPOTENCY#${key}` }),
  admission: (team: string) => ({ pk: `TEAM#${team}`, sk: 'ADMISSION' }),
  waiting: (team: string, since: string, id: string) => ({
    pk: `TEAM#${team}`,
    sk: `WAITING#${since}#${id}`,
  }),
  import: (team: string, id: string) => ({ pk: `TEAM#${team}`, sk: `IMPORT#${id}` }),
  token: (secret: string) => ({
    pk: `TOKEN#${createHash('sha256').update(secret).digest('hex')}`,
    sk: 'TOKEN',
  }),
} as const

/** Names of the table's indexes and of the attributes they are made of. */
export const indexes = {
  due: { name: 'due', partition: 'due_shard', sort: 'due_at' },
  needsYou: { name: 'needs_you', partition: 'needs_team', sort: 'sk' },
} as const

/** Live sessions are spread over this many partitions of the due index. */
const dueShards = 4
export const dueShard = (id: string): string =>
  `LIVE#${createHash('sha256').update(id).digest().readUInt8(0) % dueShards}`
export const allDueShards = Array.from({ length: dueShards }, (_, index) => `LIVE#${index}`)

const pad = (sequence: number) => String(sequence).padStart(12, '0')

/** Where everything that is uploaded for an import lies. */
export const uploadsPrefix = 'imports/'

/** Keys of a session's objects in the bucket (DESIGN 4). */
export const objectKey = {
  /** All that belongs to a session. */
  session: (team: string, id: string) => `teams/${team}/sessions/${id}/`,
  journalPrefix: (team: string, id: string) => `teams/${team}/sessions/${id}/journal/`,
  segment: (team: string, id: string, firstSequence: number) =>
    `teams/${team}/sessions/${id}/journal/${pad(firstSequence)}.jsonl`,
  snapshotPrefix: (team: string, id: string) => `teams/${team}/sessions/${id}/snapshots/`,
  snapshot: (team: string, id: string, sequence: number) =>
    `teams/${team}/sessions/${id}/snapshots/${pad(sequence)}.json`,
  agentSnapshotPrefix: (team: string, id: string) => `teams/${team}/sessions/${id}/agent-snapshots/`,
  agentSnapshot: (team: string, id: string, sequence: number) =>
    `teams/${team}/sessions/${id}/agent-snapshots/${pad(sequence)}.json`,
  /** A sealed journal, by the SHA-256 of its bytes in hex. */
  sealed: (team: string, id: string, sha256: string) =>
    `teams/${team}/sessions/${id}/sealed/${sha256}.jsonl.zst`,
  bundle: (team: string, id: string, name: string) => `teams/${team}/sessions/${id}/bundles/${name}`,
  artifactPrefix: (team: string, id: string) => `teams/${team}/sessions/${id}/artifacts/`,
  artifact: (team: string, id: string, name: string) => `teams/${team}/sessions/${id}/artifacts/${name}`,
  bundlePrefix: (team: string, id: string) => `teams/${team}/sessions/${id}/bundles/`,
  /** What somebody uploaded to be imported; outside of `teams/`, so that the bucket itself can let it expire. */
  upload: (team: string, importId: string) => `${uploadsPrefix}${team}/${importId}`,
} as const
