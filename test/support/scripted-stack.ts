import { join } from 'node:path'
import { createApp } from '../../functions/api/app.ts'
import { createStepHandler } from '../../functions/steps/handler.ts'
import { startDynamoDb } from '../../infra/local/dynamodb.ts'
import { startS3 } from '../../infra/local/s3.ts'
import { startStates } from '../../infra/local/states/server.ts'
import { newSecret } from '../../lib/ids.ts'
import { buildDefinition } from '../../lib/machine/definition.ts'
import {
  type Command,
  commandAnswerSchema,
  completeSchema,
  leaseSchema,
  type Result,
} from '../../lib/session/protocol.ts'
import { connect } from '../../lib/store/clients.ts'
import { type Compute, createPlatform } from '../../lib/store/platform.ts'
import { ensureTable } from '../../lib/store/table.ts'
import { testKeys } from './keys.ts'

/** What a scripted worker answers to a command. */
export type Script = (command: Command) => Result

const machine = 'gatehouse-session'

/**
 * The whole service over the embedded services, with the real state machine, step handler and API, and workers that
 * speak the real protocol but do no work: `script` says what each command comes to.
 */
export const startScriptedStack = async (directory: string, script: Script) => {
  const handler = Promise.withResolvers<(event: unknown) => Promise<unknown>>()
  const [dynamodb, s3, states] = await Promise.all([
    startDynamoDb({ keys: testKeys }),
    startS3({ directory: join(directory, 's3'), bucket: 'bucket', keys: testKeys }),
    startStates({
      keys: testKeys,
      directory: join(directory, 'states'),
      region: 'us-east-1',
      definitions: [{ name: machine, definition: buildDefinition('step') }],
      invoke: async (_, payload) => (await handler.promise)(payload),
    }),
  ])
  const settings = {
    ...{ region: 'us-east-1', table: 'gatehouse', bucket: 'bucket' },
    state_machine_arn: states.stateMachineArns[machine] ?? '',
    ...{ dynamodb: dynamodb.endpoint, s3: s3.endpoint, states: states.endpoint },
  }
  const clients = connect(settings, testKeys)
  await ensureTable(clients.dynamo, settings.table)
  const workers = new Map<string, { stopped: boolean; ended: Promise<void> }>()

  const post = async (token: string, path: string, body: unknown): Promise<unknown> => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const init = body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) }
    const answer = await app.fetch(new Request(`http://gatehouse/worker/v1/${path}`, init))
    if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${await answer.text()}`)
    return answer.json()
  }

  const work = async (token: string, worker: { stopped: boolean }): Promise<void> => {
    const { epoch } = leaseSchema.parse(await post(token, 'lease', { claim: newSecret() }))
    while (!worker.stopped) {
      const answer = commandAnswerSchema.parse(
        await post(token, `command?epoch=${epoch}&wait_ms=250`, undefined),
      )
      if (answer.kind === 'stop') return
      if (answer.kind === 'wait') continue
      const { command } = answer
      const ended = { epoch, command_id: command.id, result: script(command) }
      if (completeSchema.parse(await post(token, 'complete', ended)).leave) return
    }
  }

  const compute: Compute = {
    launch: async ({ id, token }) => {
      const worker = { stopped: false, ended: Promise.resolve() }
      // A worker that is told to stop in the middle of a call ends as a killed process does: without a word.
      worker.ended = work(token, worker).then(
        () => {},
        () => {},
      )
      void worker.ended.then(() => workers.delete(id))
      workers.set(id, worker)
    },
    running: async (id) => workers.has(id),
    stop: async (id) => {
      const worker = workers.get(id)
      if (!worker) return
      worker.stopped = true
      await worker.ended
    },
    list: async () => [],
    forget: async () => {},
  }
  const platform = createPlatform({
    ...{ clients, settings, compute },
    policy: { allowLocalRepositories: true, concurrency: 8 },
  })
  const app = createApp(platform, { version: 'test', log: ({ error }) => console.error(error) })
  handler.resolve(createStepHandler(platform))
  const secret = newSecret()
  await platform.tokens.add(secret, { kind: 'person', team: 'team', principal: 'ada', role: 'admin' }, null)

  return {
    platform,
    /** A call of a person who may do everything. */
    call: async (path: string, body?: unknown): Promise<{ status: number; body: unknown }> => {
      const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
      const init = body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) }
      const answer = await app.fetch(new Request(`http://gatehouse${path}`, init))
      return { status: answer.status, body: await answer.json() }
    },
    close: async () => {
      for (const id of workers.keys()) await compute.stop(id)
      await states.close()
      for (const client of [clients.dynamo, clients.s3, clients.sfn]) client.destroy()
      await Promise.all([dynamodb.close(), s3.close()])
    },
  }
}
