import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { queryObjects } from 'node:v8'
import { BatchWriteCommand } from '@aws-sdk/lib-dynamodb'
import { z } from 'zod'
import { createStepHandler } from '../../../functions/steps/handler.ts'
import { startDynamoDb } from '../../../infra/local/dynamodb.ts'
import { startS3 } from '../../../infra/local/s3.ts'
import { startStates } from '../../../infra/local/states/server.ts'
import { newId } from '../../../lib/ids.ts'
import type { Fact } from '../../../lib/journal/facts.ts'
import { buildDefinition } from '../../../lib/machine/definition.ts'
import { confirm } from '../../../lib/session/contract-decisions.ts'
import { openGate } from '../../../lib/session/gates.ts'
import { createItem, type SessionItem } from '../../../lib/session/item.ts'
import { connect } from '../../../lib/store/clients.ts'
import { transition } from '../../../lib/store/effects.ts'
import { createPlatform } from '../../../lib/store/platform.ts'
import { sessionPut } from '../../../lib/store/sessions.ts'
import { ensureTable } from '../../../lib/store/table.ts'
import { testKeys } from '../../support/keys.ts'
import { ada, creationChange, system } from '../../support/sessions.ts'

/**
 * The embedded services with the real machine and step handlers, in which sessions wait at their contract's gate: as
 * many as WAITING_FEW, then as many as WAITING_MANY. Writes what it measured as one line of JSON; needs --expose-gc.
 */
const { WAITING_HOME: home, ...counts } = z
  .object({
    WAITING_HOME: z.string(),
    WAITING_FEW: z.coerce.number(),
    WAITING_MANY: z.coerce.number(),
    WAITING_ANSWERED: z.coerce.number(),
  })
  .parse(process.env)

/** Sessions that are set up at once. */
const atOnce = 25
const team = 'team'

const handler = Promise.withResolvers<(event: unknown) => Promise<unknown>>()
const parked = { gates: 0 }
const [dynamodb, s3, states] = await Promise.all([
  startDynamoDb({ path: join(home, 'dynamodb'), keys: testKeys }),
  startS3({ directory: join(home, 's3'), bucket: 'bucket', keys: testKeys }),
  startStates({
    keys: testKeys,
    directory: join(home, 'states'),
    region: 'us-east-1',
    definitions: [{ name: 'machine', definition: buildDefinition('step') }],
    invoke: async (_, event) => {
      const answer = await (await handler.promise)(event)
      if (Object(event).step === 'Confirm') parked.gates += 1
      return answer
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
const launched: string[] = []
const platform = createPlatform({
  ...{ clients, settings },
  compute: {
    launch: async ({ session_id }) => void launched.push(session_id),
    running: async () => false,
    stop: async () => {},
    forget: async () => {},
    list: async () => [],
  },
  policy: { allowLocalRepositories: true, concurrency: 8 },
})
handler.resolve(createStepHandler(platform))

/** An item that stands at its contract's gate, with its journal written and its machine to be started. */
const itemAtGate = (): SessionItem => {
  const id = newId('ses')
  const { facts } = creationChange(id, team)
  const there: Fact[] = [
    { type: 'step_completed', data: { step: 'Baseline', trigger: 'test', next: 'Confirm' } },
    { type: 'state_changed', data: { from: 'created', to: 'contract_proposed', trigger: 'test' } },
    openGate('contract', Date.now()),
  ]
  const item = createItem(
    { team, id },
    { actor: system, facts: [...facts, ...there] },
    new Date().toISOString(),
  )
  const execution_arn = platform.machine.executionArn(`${id}-1`)
  return { ...item, outbox: [], runtime: { ...item.runtime, start_pending: false, execution_arn } }
}

const putAll = (items: SessionItem[]) =>
  clients.dynamo.send(
    new BatchWriteCommand({
      RequestItems: {
        [settings.table]: items.map((item) => ({
          PutRequest: { Item: sessionPut(settings.table, item, 0).Item },
        })),
      },
    }),
  )

const ids: string[] = []
/** Has so many sessions wait; their machines enter at admission, are sent on to the gate and park there. */
const haveWaiting = async (count: number): Promise<void> => {
  while (ids.length < count) {
    const items = Array.from({ length: Math.min(atOnce, count - ids.length) }, itemAtGate)
    ids.push(...items.map(({ id }) => id))
    await putAll(items)
    await Promise.all(items.map(({ id }) => platform.machine.start({ team, id, attempt: 1 })))
    while (parked.gates < ids.length || states.atWork() > 0) await nextTurn()
  }
}

const aTimer = setTimeout(() => {}, 0)
const Timer = aTimer.constructor
clearTimeout(aTimer)

/** What the process holds when nothing is left that a collection could free. */
const held = async () => {
  for (let times = 0; times < 4; times += 1) {
    global.gc?.()
    await nextTurn()
  }
  const timers = queryObjects(Timer)
  const { heapUsed, external } = process.memoryUsage()
  const resources = process.getActiveResourcesInfo()
  const active = (kind: string) => resources.filter((resource) => resource === kind).length
  return {
    // The bytes of array buffers are among the external ones.
    bytes: heapUsed + external,
    // Active ones, and all that there are: a timer that keeps no process alive is not among the active.
    active_timers: active('Timeout'),
    timers,
    children: active('ProcessWrap'),
    workers: launched.length,
    at_work: states.atWork(),
  }
}

const goOn = async (id: string) => {
  await transition(platform, { team, id }, (item) =>
    confirm(item, { contract_hash: item.document.contract_hash ?? '', contract: null }, ada),
  )
  while (!launched.includes(id)) await nextTurn()
  const events = await platform.machine.history(platform.machine.executionArn(`${id}-1`))
  return {
    ids: events.map((event) => event.id),
    entered: events.flatMap((event) => event.stateEnteredEventDetails?.name ?? []),
  }
}

await haveWaiting(counts.WAITING_FEW)
const few = await held()
await haveWaiting(counts.WAITING_MANY)
const many = await held()
const every = Math.ceil(ids.length / counts.WAITING_ANSWERED)
const answered = await Promise.all(ids.filter((_, at) => at % every === 0).map(goOn))
process.stdout.write(`${JSON.stringify({ few, many, answered })}\n`)

for (const client of [clients.dynamo, clients.s3, clients.sfn]) client.destroy()
await Promise.all([dynamodb.close(), s3.close(), states.close()])
