import { readFile, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { createApp } from '../../functions/api/app.ts'
import { computeStopped } from '../../functions/compute/stopped.ts'
import { createStepHandler } from '../../functions/steps/handler.ts'
import { newMemory, type SweepLine } from '../../functions/sweep/round.ts'
import { sweep } from '../../functions/sweep/sweep.ts'
import { limits } from '../../lib/limits.ts'
import { buildDefinition } from '../../lib/machine/definition.ts'
import { type Clients, connect, type ServiceSettings } from '../../lib/store/clients.ts'
import { createPlatform, type Platform } from '../../lib/store/platform.ts'
import { ensureTable } from '../../lib/store/table.ts'
import { ensureAdminToken } from './admin-token.ts'
import { createApiServer } from './api-server.ts'
import { bundleWorker } from './bundle.ts'
import { commandLineProfile, ensureKeyPair, type KeyPair, writePrivate } from './doors/key-pair.ts'
import { closeHome, openHome } from './doors/private-home.ts'
import { startDynamoDb } from './dynamodb.ts'
import { listenOnLoopback, stopServer } from './loopback.ts'
import { openRuns, type RunsRoot } from './runs.ts'
import { startS3 } from './s3.ts'
import { projectRoot } from './settings.ts'
import { startStates } from './states/server.ts'
import { requireDatabaseOfObjects } from './storage/database-folder.ts'
import { launchingWithRoom, withFloor } from './storage/floor.ts'
import { holdAgainstItself } from './storage/held-against.ts'
import { lackOfRoom } from './storage/room.ts'
import { startWorkers } from './workers.ts'

const region = 'us-east-1'
const names = { table: 'gatehouse', bucket: 'gatehouse', machine: 'gatehouse-session' } as const
const stepFunctionArn = `arn:aws:lambda:${region}:000000000000:function:gatehouse-step`
const sweepEveryMs = 60_000

export type Stack = {
  url: string
  /** Where the work of sessions is, and what better places would not do. */
  runs: RunsRoot
  adminToken: string
  platform: Platform
  /** Addresses of the three services, as written to `endpoints.json`. */
  endpoints: ServiceSettings
  /** Stops everything that was started; sessions go on at the next start. */
  close: () => Promise<void>
}

export type StackOptions = {
  port: number
  home: string
  concurrency: number
  /** Told of faults of ours; nothing that a caller did wrong. */
  log: (line: string) => void
  /** A seam for fault tests: is given the SDK clients before anything uses them. */
  onClients?: (clients: Clients) => void
}

const versionOf = async (): Promise<string> =>
  z
    .object({ version: z.string() })
    .parse(JSON.parse(await readFile(join(projectRoot, 'package.json'), 'utf8'))).version

const destroy = ({ dynamo, s3, sfn }: Clients): void => {
  for (const client of [dynamo, s3, sfn]) client.destroy()
}

/** Makes the table where it is missing, and holds the home against itself, with nothing of it running yet. */
const requireSoundHome = async (
  stores: Omit<ServiceSettings, 'state_machine_arn'>,
  keys: KeyPair,
  { home, log }: Pick<StackOptions, 'home' | 'log'>,
): Promise<void> => {
  const clients = connect({ ...stores, state_machine_arn: '' }, keys)
  try {
    await ensureTable(clients.dynamo, stores.table)
    await holdAgainstItself({ home, clients, table: stores.table, bucket: stores.bucket, log })
  } finally {
    destroy(clients)
  }
}

/** Starts the whole of Gatehouse in this process: the three services, the API, the step handlers, the sweep, and workers as children. */
export const startStack = async (options: StackOptions): Promise<Stack> => {
  const { home, log } = options
  const startedAt = Date.now()
  // Before anything is written.
  await requireDatabaseOfObjects(join(home, 'dynamodb'), join(home, 's3', 'buckets', names.bucket))
  await openHome(home)
  const closers: (() => Promise<void>)[] = []
  const close = async () => {
    for (const one of closers.splice(0).reverse()) await one()
  }
  try {
    const keys = await ensureKeyPair(join(home, 'access-key.json'))
    // The first to hold the folder; whoever can't must not touch what another stack uses.
    const dynamo = await startDynamoDb({ keys, path: join(home, 'dynamodb') })
    closers.push(dynamo.close)
    const [program, version] = await Promise.all([bundleWorker(home), versionOf()])
    const runs = await openRuns(home, log)
    const s3 = await startS3({ keys, directory: join(home, 's3'), bucket: names.bucket })
    closers.push(s3.close)
    const stores = {
      ...{ dynamodb: dynamo.endpoint, s3: s3.endpoint, region },
      ...{ table: names.table, bucket: names.bucket },
    }
    await requireSoundHome(stores, keys, { home, log })
    // Work that a stop in order took along is taken up again as it was; after anything else it counts as a fault.
    const inOrder = join(home, 'stopped-in-order')
    const planned = await unlink(inOrder).then(
      () => true,
      () => false,
    )

    // The machine calls the step handler, which needs the machine's address: it is there before the first call.
    const handler = Promise.withResolvers<(event: unknown) => Promise<unknown>>()
    const states = await startStates({
      keys,
      directory: join(home, 'states'),
      region,
      definitions: [{ name: names.machine, definition: buildDefinition(stepFunctionArn) }],
      invoke: async (_functionArn, payload) => (await handler.promise)(payload),
    })
    closers.push(states.close)

    const endpoints: ServiceSettings = {
      ...stores,
      states: states.endpoint,
      state_machine_arn: states.stateMachineArns[names.machine] ?? '',
    }
    const clients = connect(endpoints, keys)
    options.onClients?.(clients)
    closers.push(async () => destroy(clients))
    const address = { url: '' }
    const lack = () => lackOfRoom([home, runs.root.folder], limits.disk.floor)
    const workers = startWorkers({
      program,
      home,
      runs: runs.root.folder,
      api: () => address.url,
      log,
      onStopped: ({ id, team, session_id, reason }) =>
        computeStopped(platform, { team, id: session_id, worker_id: id, reason }).catch((error: unknown) =>
          log(`worker ${id}: ${error}`),
        ),
    })
    const platform = createPlatform({
      clients,
      settings: endpoints,
      compute: launchingWithRoom(workers, lack),
      policy: { allowLocalRepositories: true, concurrency: options.concurrency },
    })
    handler.resolve(createStepHandler(platform))
    closers.push(workers.close)

    const adminToken = await ensureAdminToken(join(home, 'admin-token'), platform.tokens)
    const app = createApp(platform, { version, log: (line) => log(JSON.stringify(line)) })
    const server = createApiServer(withFloor(app.fetch, lack))
    address.url = await listenOnLoopback(server, options.port)
    closers.push(() => stopServer(server))
    await writePrivate(join(home, 'endpoints.json'), `${JSON.stringify(endpoints, null, 2)}\n`)
    await writePrivate(join(home, 'aws-config'), commandLineProfile(keys, endpoints))
    await closeHome(home)

    let sweeping: Promise<void> = Promise.resolve()
    let closing = false
    const round = {
      startedAt,
      memory: newMemory(),
      log: (line: SweepLine) => log(`sweep: ${JSON.stringify(line)}`),
      hasTime: () => !closing,
    }
    const runSweep = (all: boolean, planned = false) => {
      sweeping = sweeping
        .then(() => sweep(platform, { ...round, all, planned }))
        .then(async ({ faults }) => {
          await runs.clear(workers.holds)
          for (const { id, error } of faults)
            log(`sweep of ${id}: ${error instanceof Error ? (error.stack ?? error.message) : error}`)
        })
        .catch((error: unknown) => log(`sweep: ${error}`))
    }
    runSweep(true, planned)
    const timer = setInterval(() => runSweep(false), sweepEveryMs)
    closers.push(async () => {
      closing = true
      clearInterval(timer)
      await sweeping
    })
    const stopInOrder = async () => {
      await close()
      await writePrivate(inOrder, '')
    }
    return { url: address.url, runs: runs.root, adminToken, platform, endpoints, close: stopInOrder }
  } catch (error) {
    await close()
    throw error
  }
}
