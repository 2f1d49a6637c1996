import { AsyncLocalStorage } from 'node:async_hooks'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { BatchWriteCommand, QueryCommand } from '@aws-sdk/lib-dynamodb'
import { z } from 'zod'
import { createApp } from '../../functions/api/app.ts'
import { startDynamoDb } from '../../infra/local/dynamodb.ts'
import { startS3 } from '../../infra/local/s3.ts'
import { newSecret } from '../../lib/ids.ts'
import type { SessionItem } from '../../lib/session/item.ts'
import { connect } from '../../lib/store/clients.ts'
import { type Compute, createPlatform, type Platform } from '../../lib/store/platform.ts'
import { ensureTable } from '../../lib/store/table.ts'
import { testKeys } from '../support/keys.ts'

/** The end of a process that was made on purpose. */
export class Crash extends Error {}

/**
 * What befalls one operation at its n-th call to any service, before the call or after it and before its answer: its
 * process dies, the call fails, something else happens meanwhile, or it stalls until long after it was given up.
 */
export type Fault = {
  kind: 'crash' | 'fail' | 'meanwhile' | 'stall'
  call: number
  when: 'before' | 'after'
}
/** What may befall what a move does, what else happens meanwhile, and who is to wake it where it stalls. */
export type Circumstances = {
  fault: Fault | null
  dice: number
  meanwhile: () => Promise<void>
  stalled: (wake: () => Promise<void>) => void
}

type Operation = {
  calls: number
  around: Circumstances
  dead: boolean
  stall: () => Promise<void>
  /** Calls that have been made and not answered; they outlive the process that made them. */
  open: Set<Promise<unknown>>
}
const operations = new AsyncLocalStorage<Operation>()

const befall = async (operation: Operation, { kind, call }: Fault): Promise<void> => {
  if (kind === 'meanwhile') return operation.around.meanwhile()
  if (kind === 'stall') return operation.stall()
  operation.dead = kind === 'crash'
  throw new Crash(`${kind} at call ${call}`)
}

const made = async <Answer>({ open }: Operation, call: () => Promise<Answer>): Promise<Answer> => {
  const answer = call()
  open.add(answer)
  return answer.finally(() => open.delete(answer))
}

/** Every call to a service comes through here. */
const called = async <Answer>(call: () => Promise<Answer>): Promise<Answer> => {
  const operation = operations.getStore()
  if (!operation) return call()
  if (operation.dead) throw new Crash('its process has died')
  operation.calls += 1
  const { fault } = operation.around
  if (fault?.call !== operation.calls) return made(operation, call)
  if (fault.when === 'before') await befall(operation, fault)
  const answer = await made(operation, call)
  if (fault.when === 'after') await befall(operation, fault)
  return answer
}

/** A port whose calls are calls to a service. */
const asService = <Port extends object>(port: Port): Port =>
  new Proxy(port, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function' || name === 'executionArn') return member
      return (...given: unknown[]) => called(async () => Reflect.apply(member, target, given))
    },
  })

type Outcome<Result> = { struck: boolean; died: boolean } & (
  | { ok: true; value: Result }
  | { ok: false; error: unknown }
)

/**
 * Runs one operation of one process under a fault. `struck` says that the fault came and that the operation may fail by
 * it, `died` that nobody hears of its end.
 */
export const operate = async <Result>(
  around: Circumstances,
  work: () => Promise<Result>,
): Promise<Outcome<Result>> => {
  const { fault } = around
  const given = Promise.withResolvers<'up'>()
  const woken = Promise.withResolvers<void>()
  const stall = (): Promise<void> => {
    given.resolve('up')
    return woken.promise
  }
  const operation: Operation = { calls: 0, around, dead: false, stall, open: new Set() }
  const struck = () => fault !== null && fault.kind !== 'meanwhile' && operation.calls >= fault.call
  const finished: Promise<Outcome<Result>> = operations.run(operation, work).then(
    (value) => ({ ok: true, value, struck: struck(), died: operation.dead }),
    (error: unknown) => ({ ok: false, error, struck: struck(), died: operation.dead }),
  )
  const done = await Promise.race([finished, given.promise])
  if (done === 'up') {
    around.stalled(async () => {
      woken.resolve()
      await finished
    })
    return { ok: false, error: new Crash('stalled'), struck: true, died: true }
  }
  await Promise.allSettled([...operation.open])
  return done
}

const writtenItem = z.object({
  Item: z.custom<SessionItem>((item) => item instanceof Object && 'document' in item),
})
const createdObject = z.object({ Key: z.string(), Body: z.string(), IfNoneMatch: z.literal('*') })
const keys = z.array(z.object({ pk: z.string(), sk: z.string() }))

/** What one run brings along; the services are the same for all. */
export type Parts = {
  now: () => number
  machine: Platform['machine']
  compute: Compute
  written: (item: SessionItem) => void
  /** Told of each object that was written as the first of its key. */
  created: (key: string, body: string) => void
}

export const team = 'model'

/**
 * The real DynamoDB and S3 of the embedded stack and the real API over them, for one run after the other. The clock,
 * the machine and the workers are the run's own.
 */
export const startServices = async (directory: string) => {
  const bucket = 'bucket'
  const [dynamodb, s3] = await Promise.all([
    startDynamoDb({ keys: testKeys }),
    startS3({ directory: join(directory, 's3'), bucket, keys: testKeys }),
  ])
  const settings = {
    ...{ region: 'us-east-1', table: 'gatehouse', bucket, state_machine_arn: 'none' },
    ...{ dynamodb: dynamodb.endpoint, s3: s3.endpoint },
  }
  const clients = connect(settings, testKeys)
  await ensureTable(clients.dynamo, settings.table)

  let parts: Parts | null = null
  const current = (): Parts => {
    if (!parts) throw new Error('no run has begun')
    return parts
  }
  const first = { step: 'initialize', priority: 'high', name: 'called', override: true } as const
  clients.dynamo.middlewareStack.add(
    (next) => (args) =>
      called(async () => {
        const answer = await next(args)
        const { data } = writtenItem.safeParse(args.input)
        if (data) parts?.written(data.Item)
        return answer
      }),
    first,
  )
  clients.s3.middlewareStack.add(
    (next) => (args) =>
      called(async () => {
        const answer = await next(args)
        const { data } = createdObject.safeParse(args.input)
        if (data) parts?.created(data.Key, data.Body)
        return answer
      }),
    first,
  )

  const base = createPlatform({
    ...{ clients, settings, clock: () => current().now() },
    compute: asService({
      launch: (worker) => current().compute.launch(worker),
      running: (id) => current().compute.running(id),
      list: () => current().compute.list(),
      stop: (id) => current().compute.stop(id),
      forget: (session) => current().compute.forget(session),
    } satisfies Compute),
    policy: { allowLocalRepositories: false, concurrency: 2 },
  })
  const port: Platform['machine'] = {
    executionArn: (name) => current().machine.executionArn(name),
    start: (session) => current().machine.start(session),
    answer: (answer) => current().machine.answer(answer),
    heartbeat: (token) => current().machine.heartbeat(token),
    status: (arn) => current().machine.status(arn),
    running: (limit, from) => current().machine.running(limit, from),
    inputOf: (arn) => current().machine.inputOf(arn),
    stop: (arn, error, cause) => current().machine.stop(arn, error, cause),
    history: (arn) => current().machine.history(arn),
  }
  const platform: Platform = { ...base, machine: asService(port) }
  const people = { ada: newSecret(), bob: newSecret(), olga: newSecret() }
  const roles = { ada: 'admin', bob: 'approver', olga: 'operator' } as const
  for (const name of ['ada', 'bob', 'olga'] as const)
    await base.tokens.add(people[name], { kind: 'person', team, principal: name, role: roles[name] }, null)
  const faults: string[] = []
  const app = createApp(platform, { version: 'test', log: ({ error }) => faults.push(error) })

  /** Removes all that a run left, so that the next one's sweep finds nothing of it. */
  const clear = async (): Promise<void> => {
    parts = null
    for (;;) {
      const { Items } = await clients.dynamo.send(
        new QueryCommand({
          TableName: settings.table,
          KeyConditionExpression: 'pk = :pk',
          ExpressionAttributeValues: { ':pk': `TEAM#${team}` },
          ProjectionExpression: 'pk, sk',
        }),
      )
      const batch = keys.parse(Items ?? []).slice(0, 25)
      if (batch.length === 0) break
      const deletions = batch.map((Key) => ({ DeleteRequest: { Key } }))
      await clients.dynamo.send(new BatchWriteCommand({ RequestItems: { [settings.table]: deletions } }))
    }
    await rm(join(directory, 's3', 'buckets', bucket, 'teams'), { recursive: true, force: true })
  }

  return {
    platform,
    /** Tokens of three people: two who may approve, and one who may not. */
    people,
    fetch: async (request: Request): Promise<Response> => app.fetch(request),
    begin: (run: Parts) => {
      parts = run
      faults.length = 0
    },
    clear,
    /** What the API logged as our faults in this run. */
    faults,
    close: async () => {
      for (const client of [clients.dynamo, clients.s3, clients.sfn]) client.destroy()
      await Promise.all([dynamodb.close(), s3.close()])
    },
  }
}
export type Services = Awaited<ReturnType<typeof startServices>>
