import { join } from 'node:path'
import { startDynamoDb } from '../../infra/local/dynamodb.ts'
import { startS3 } from '../../infra/local/s3.ts'
import { startStates } from '../../infra/local/states/server.ts'
import { type Clients, connect } from '../../lib/store/clients.ts'
import { createPlatform } from '../../lib/store/platform.ts'
import { ensureTable } from '../../lib/store/table.ts'
import { testKeys } from './keys.ts'

/** A machine that parks once on a task token and ends with its answer. */
const parkOnce = {
  StartAt: 'Park',
  States: {
    Park: {
      Type: 'Task',
      Resource: 'arn:aws:states:::lambda:invoke.waitForTaskToken',
      Parameters: {
        FunctionName: 'park',
        Payload: { 'session_id.$': '$.session_id', 'token.$': '$$.Task.Token' },
      },
      TimeoutSeconds: 300,
      End: true,
    },
  },
}

/** The three embedded services and a platform over them, without API, step handlers, sweep or workers. */
export const startPieces = async (
  directory: string,
  options: { concurrency?: number; clock?: () => number } = {},
) => {
  const parked = new Map<string, PromiseWithResolvers<string>>()
  const parking = (session: string) => {
    const known = parked.get(session) ?? Promise.withResolvers<string>()
    parked.set(session, known)
    return known
  }
  const starts = new Map<string, number>()
  const [dynamodb, s3, states] = await Promise.all([
    startDynamoDb({ keys: testKeys }),
    startS3({ directory: join(directory, 's3'), bucket: 'bucket', keys: testKeys }),
    startStates({
      keys: testKeys,
      directory: join(directory, 'states'),
      region: 'us-east-1',
      definitions: [{ name: 'machine', definition: parkOnce }],
      invoke: async (_, payload) => {
        const { session_id, token } = Object(payload)
        starts.set(session_id, (starts.get(session_id) ?? 0) + 1)
        parking(session_id).resolve(token)
        return null
      },
    }),
  ])
  const settings = {
    ...{ region: 'us-east-1', table: 'gatehouse', bucket: 'bucket' },
    state_machine_arn: states.stateMachineArns.machine ?? '',
    ...{ dynamodb: dynamodb.endpoint, s3: s3.endpoint, states: states.endpoint },
  }
  const clients = connect(settings, testKeys)
  await ensureTable(clients.dynamo, settings.table)
  const platform = createPlatform({
    ...{ clients, settings },
    compute: {
      launch: async () => {},
      running: async () => false,
      list: async () => [],
      stop: async () => {},
      forget: async () => {},
    },
    policy: { allowLocalRepositories: true, concurrency: options.concurrency ?? 2 },
    ...(options.clock ? { clock: options.clock } : {}),
  })
  return {
    platform,
    clients,
    settings,
    /** The token on which a session's execution parks. */
    tokenOf: (session: string) => parking(session).promise,
    /** How often a session's machine has entered its one step. */
    startsOf: (session: string) => starts.get(session) ?? 0,
    close: async () => {
      for (const client of [clients.dynamo, clients.s3, clients.sfn]) client.destroy()
      await Promise.all([dynamodb.close(), s3.close(), states.close()])
    },
  }
}
export type Pieces = Awaited<ReturnType<typeof startPieces>>

/** A crash that was made on purpose. */
export class Crash extends Error {}

/**
 * Arms one crash: the n-th call to any of the services from now on fails, before it is made or after it was made and
 * before its answer arrives. `fired` tells whether there were that many calls.
 */
export const crashAt = ({ dynamo, s3, sfn }: Clients, n: number, when: 'before' | 'after') => {
  const state = { calls: 0, fired: false }
  const interrupt = async <Answer>(call: () => Promise<Answer>): Promise<Answer> => {
    state.calls += 1
    if (state.calls !== n) return call()
    state.fired = true
    if (when === 'after') await call()
    throw new Crash(`call ${n}, ${when}`)
  }
  const options = { step: 'initialize', name: 'crash', override: true } as const
  dynamo.middlewareStack.add((next) => (args) => interrupt(() => next(args)), options)
  s3.middlewareStack.add((next) => (args) => interrupt(() => next(args)), options)
  sfn.middlewareStack.add((next) => (args) => interrupt(() => next(args)), options)
  return state
}
