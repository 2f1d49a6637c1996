import { readFileSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { GetCommand, UpdateCommand } from '@aws-sdk/lib-dynamodb'
import { localTeam } from '../../infra/local/admin-token.ts'
import { keyPairSchema } from '../../infra/local/doors/key-pair.ts'
import { limits } from '../../lib/limits.ts'
import { workerMark } from '../../lib/process/live.ts'
import type { SessionItem } from '../../lib/session/item.ts'
import { createAdmission } from '../../lib/store/admission.ts'
import { createArtifacts } from '../../lib/store/artifacts.ts'
import { createBlobs } from '../../lib/store/blobs.ts'
import { connect, serviceSettingsSchema } from '../../lib/store/clients.ts'
import { createJournals } from '../../lib/store/journals.ts'
import { itemKey } from '../../lib/store/keys.ts'
import { createMachine } from '../../lib/store/machine.ts'
import { createPayloads } from '../../lib/store/payloads.ts'
import { createSessions } from '../../lib/store/sessions.ts'
import { createStates } from '../../lib/store/states.ts'

/** What a running stack keeps, read past it with clients of our own. */
export const openKept = (home: string) => {
  const settings = serviceSettingsSchema.parse(JSON.parse(readFileSync(join(home, 'endpoints.json'), 'utf8')))
  const keys = keyPairSchema.parse(JSON.parse(readFileSync(join(home, 'access-key.json'), 'utf8')))
  const clients = connect(settings, keys)
  const blobs = createBlobs(clients.s3, settings.bucket)
  const journals = createJournals(clients.s3, settings.bucket, blobs, (id) => sessions.get(id))
  const payloads = createPayloads(blobs)
  const sessions = createSessions(clients.dynamo, settings.table, Date.now, journals)
  const key = (name: string) => ({
    TableName: settings.table,
    Key: itemKey.idempotency(localTeam, name),
  })
  return {
    clients,
    parts: {
      ...{ artifacts: createArtifacts(blobs), blobs, journals, payloads, sessions },
      states: createStates(blobs, journals, payloads),
    },
    machine: createMachine(clients.sfn, settings.state_machine_arn),
    item: (id: string): Promise<SessionItem> => sessions.require({ team: localTeam, id }),
    slots: async (): Promise<string[]> => {
      const slots = await createAdmission(clients.dynamo, settings.table, Date.now).slots(localTeam)
      return slots.map(({ session_id }) => session_id)
    },
    /** The session once its machine is done with it and nothing is left to carry out. */
    settled: (id: string): Promise<SessionItem> =>
      until(`session ${id} is settled`, async () => {
        const item = await sessions.require({ team: localTeam, id })
        const { outbox, runtime } = item
        return runtime.settled && outbox.length === 0 && runtime.answers.length === 0 ? item : null
      }),
    /** Makes a call that died with its key look as old as its claim may get, as waiting for it would. */
    ageClaim: async (name: string): Promise<void> => {
      const { Item } = await clients.dynamo.send(new GetCommand(key(name)))
      if (!Item) return
      await clients.dynamo.send(
        new UpdateCommand({
          ...key(name),
          UpdateExpression: 'SET claimed_at = claimed_at - :lease',
          ExpressionAttributeValues: { ':lease': limits.idempotencyLeaseMs },
        }),
      )
    },
    close: (): void => {
      for (const client of [clients.dynamo, clients.s3, clients.sfn]) client.destroy()
    },
  }
}
export type Kept = ReturnType<typeof openKept>

/** Looks again and again until a fact is there; throws, naming it, when it is not within the time. */
export const until = async <Fact>(
  what: string,
  look: () => Promise<Fact | null> | Fact | null,
  withinMs = 30_000,
): Promise<Fact> => {
  const giveUpAt = performance.now() + withinMs
  for (;;) {
    const fact = await look()
    if (fact !== null) return fact
    if (performance.now() > giveUpAt) throw new Error(`not within ${withinMs} ms: ${what}`)
    await sleep(25)
  }
}

/** The running processes that a variable of their environment marks, by process id. */
const marked = async (isOurs: (variable: string) => boolean): Promise<number[]> => {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const found = await Promise.all(
    pids.map(async (pid) => {
      // A zombie's environment is empty.
      const environment = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '')
      return environment.split('\0').some(isOurs) ? [pid] : []
    }),
  )
  return found.flat()
}

/** The worker processes of the stack on a folder, not what they started. */
export const workersOf = (home: string): Promise<number[]> =>
  marked((variable) => variable === `GATEHOUSE_WORKER_HOME=${join(home, 'worker')}`)

/** Every running process that was started by or is one of these workers. */
export const processesOf = (workers: readonly string[]): Promise<number[]> => {
  const marks = new Set(workers.map((id) => `${workerMark}=${id}`))
  return marked((variable) => marks.has(variable))
}
