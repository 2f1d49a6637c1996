import { createAdmission } from './admission.ts'
import { createArtifacts } from './artifacts.ts'
import { createBlobs } from './blobs.ts'
import type { Clients, ServiceSettings } from './clients.ts'
import { createHeads } from './heads.ts'
import { createIdempotency } from './idempotency.ts'
import { createImports } from './imports.ts'
import { createJournals } from './journals.ts'
import { createMachine } from './machine.ts'
import { createPayloads } from './payloads.ts'
import { type Clock, createSessions } from './sessions.ts'
import { createStates } from './states.ts'
import { createTokens } from './tokens.ts'

/** How workers are started and ended: containers in the cloud, child processes on one machine. */
export type Compute = {
  /** Starts a worker that has nothing but this. Throws `compute_unavailable` when none can be had. */
  launch: (worker: { id: string; team: string; session_id: string; token: string }) => Promise<void>
  /** Whether a worker runs, from the truth of its platform and not from what it last said. */
  running: (id: string) => Promise<boolean>
  /** Every worker that runs, with the session that it was started for. */
  list: () => Promise<{ id: string; team: string; session_id: string }[]>
  /** Ends a worker and all that it started; resolves when its end was seen. Harmless for one that is gone. */
  stop: (id: string) => Promise<void>
  /**
   * Removes what workers keep of a session beyond their own end: its private refs, its log. Harmless to repeat, and
   * where nothing is kept.
   */
  forget: (session: { repo: string; session_id: string }) => Promise<void>
}

/** What a deployment decides. */
export type Policy = {
  /** Whether sessions may name repositories by path on the machine where the workers run. */
  allowLocalRepositories: boolean
  /** Sessions of one team that may hold a slot at once. */
  concurrency: number
}

/** Everything that the entry points work with. */
export type Platform = ReturnType<typeof createPlatform>

export const createPlatform = (options: {
  clients: Clients
  settings: ServiceSettings
  compute: Compute
  policy: Policy
  clock?: Clock
}) => {
  const { clients, settings, compute, policy, clock = Date.now } = options
  const blobs = createBlobs(clients.s3, settings.bucket)
  const journals = createJournals(clients.s3, settings.bucket, blobs, (id) => sessions.get(id))
  const sessions = createSessions(clients.dynamo, settings.table, clock, journals)
  const payloads = createPayloads(blobs)
  const states = createStates(blobs, journals, payloads)
  return {
    clock,
    compute,
    policy,
    blobs,
    artifacts: createArtifacts(blobs),
    sessions,
    journals,
    payloads,
    states,
    heads: createHeads(states, journals, payloads),
    machine: createMachine(clients.sfn, settings.state_machine_arn),
    tokens: createTokens(clients.dynamo, settings.table, clock),
    idempotency: createIdempotency(clients.dynamo, settings.table, clock),
    imports: createImports(clients.dynamo, settings.table, clock),
    admission: createAdmission(clients.dynamo, settings.table, clock),
  }
}
