import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { startDynamoDb } from '../../../infra/local/dynamodb.ts'
import { startS3 } from '../../../infra/local/s3.ts'
import { startStates } from '../../../infra/local/states/server.ts'
import { newSecret } from '../../../lib/ids.ts'
import { buildDefinition } from '../../../lib/machine/definition.ts'
import { connect } from '../../../lib/store/clients.ts'
import { ensureTable } from '../../../lib/store/table.ts'
import { createTokens } from '../../../lib/store/tokens.ts'
import { testKeys } from '../../support/keys.ts'
import { proxyEvent } from './api-gateway-event.ts'
import { type LambdaProcess, startLambda } from './lambda-process.ts'
import { synthesise } from './synthesised.ts'

const region = 'us-east-1'
const names = { table: 'bundles', bucket: 'bundles', machine: 'bundles' }
const token = newSecret()
const functionSchema = z.object({
  Properties: z.object({ Environment: z.object({ Variables: z.record(z.string(), z.unknown()) }) }),
  Metadata: z.object({ 'aws:asset:path': z.string() }),
})

const closers: (() => Promise<unknown>)[] = []
afterAll(async () => {
  for (const close of closers.reverse()) await close()
})

let api: LambdaProcess
let sweep: LambdaProcess
/** The three bundles as processes of their own, on embedded services, joined as the template joins them. */
beforeAll(async () => {
  const directory = await mkdtemp(join(tmpdir(), 'gatehouse-bundles-'))
  closers.push(() => rm(directory, { recursive: true, force: true }))
  const template = synthesise(directory, { bundle: true })

  const dynamo = await startDynamoDb({ keys: testKeys })
  closers.push(dynamo.close)
  const s3 = await startS3({ directory: join(directory, 's3'), bucket: names.bucket, keys: testKeys })
  closers.push(s3.close)
  const step = Promise.withResolvers<LambdaProcess>()
  const states = await startStates({
    keys: testKeys,
    directory: join(directory, 'states'),
    region,
    definitions: [
      { name: names.machine, definition: buildDefinition('arn:aws:lambda:us-east-1:1:function:step') },
    ],
    invoke: async (_arn, payload) => (await (await step.promise).invoke(payload)).result,
  })
  closers.push(states.close)

  const settings = {
    region,
    ...{
      table: names.table,
      bucket: names.bucket,
      state_machine_arn: states.stateMachineArns[names.machine] ?? '',
    },
    ...{ dynamodb: dynamo.endpoint, s3: s3.endpoint, states: states.endpoint },
  }
  const clients = connect(settings, testKeys)
  closers.push(async () => clients.dynamo.destroy())
  await ensureTable(clients.dynamo, names.table)
  const admin = { kind: 'person', team: 'team', principal: 'admin', role: 'admin' } as const
  await createTokens(clients.dynamo, names.table, Date.now).add(token, admin, null)

  const resources = Object.entries(template.findResources('AWS::Lambda::Function'))
  const start = async (name: string): Promise<LambdaProcess> => {
    const [, resource] = resources.find(([id]) => id.startsWith(name)) ?? []
    const { Properties, Metadata } = functionSchema.parse(resource)
    // The template's own values where they are known at synthesis, the embedded services' for its references.
    const references: Record<string, string> = {
      TABLE_NAME: settings.table,
      BUCKET_NAME: settings.bucket,
      STATE_MACHINE_ARN: settings.state_machine_arn,
    }
    const env = Object.entries(Properties.Environment.Variables).map(([variable, value]) => [
      variable,
      z.string().parse(typeof value === 'string' ? value : references[variable]),
    ])
    const lambda = await startLambda(join(directory, Metadata['aws:asset:path']), {
      ...Object.fromEntries(env),
      AWS_REGION: region,
      ...{ AWS_ACCESS_KEY_ID: testKeys.accessKeyId, AWS_SECRET_ACCESS_KEY: testKeys.secretAccessKey },
      ...{ AWS_ENDPOINT_URL_DYNAMODB: settings.dynamodb, AWS_ENDPOINT_URL_S3: settings.s3 },
      AWS_ENDPOINT_URL_SFN: settings.states,
    })
    closers.push(lambda.stop)
    return lambda
  }
  const [stepProcess, apiProcess, sweepProcess] = await Promise.all(
    ['StepFunction', 'ApiFunction', 'SweepFunction'].map(start),
  )
  if (!stepProcess || !apiProcess || !sweepProcess) throw new Error('a function did not start')
  step.resolve(stepProcess)
  api = apiProcess
  sweep = sweepProcess
})

const authorised = { authorization: `Bearer ${token}` }
const started = z.object({ id: z.string(), intent: z.string() })
const intent = 'Größe prüfen → „fertig“ 🚪'

const startSession = async (repo: string, base64 = true) => {
  const body = JSON.stringify({ repo, intent, engine: 'external:command', engine_command: 'true' })
  const { prelude, body: answer = '' } = await api.invoke(
    proxyEvent('POST', '/v1/sessions', {
      headers: { ...authorised, 'content-type': 'application/json' },
      body: base64 ? Buffer.from(body).toString('base64') : body,
      base64,
    }),
  )
  return { status: prelude?.statusCode, answer: JSON.parse(answer) }
}

describe('the API bundle', () => {
  it('answers API Gateway’s event', async () => {
    const { prelude, body = '' } = await api.invoke(proxyEvent('GET', '/healthz'))
    expect(prelude?.statusCode).toBe(200)
    expect(prelude?.headers['content-type']).toContain('application/json')
    expect(JSON.parse(body)).toMatchObject({ status: 'ok', version: expect.stringMatching(/^\d+\.\d+\.\d+/) })
  })

  it('brings the files of its reference along', async () => {
    const { prelude, body = '' } = await api.invoke(proxyEvent('GET', '/docs/swagger-ui-bundle.js'))
    expect(prelude?.headers['content-type']).toMatch(/^text\/javascript/)
    expect(body).toContain('SwaggerUIBundle')
  })

  it('tells a stranger no', async () => {
    const { prelude, body = '' } = await api.invoke(proxyEvent('GET', '/v1/sessions'))
    expect(prelude?.statusCode).toBe(401)
    expect(JSON.parse(body)).toMatchObject({ code: 'unauthenticated' })
  })

  it.each([true, false])('takes a body as it was sent (base64: %s)', async (base64) => {
    const { status, answer } = await startSession('https://git.example.invalid/a/b.git', base64)
    expect({ status, answer }).toMatchObject({ status: 201, answer: { intent } })
  })

  it('refuses a repository on the machine it runs on', async () => {
    const { status, answer } = await startSession('/srv/repository')
    expect({ status, answer }).toMatchObject({ status: 422, answer: { code: 'repository_refused' } })
  })

  it('ends a follower’s stream before the function’s time is up, after a whole event', async () => {
    const { id } = started.parse((await startSession('https://git.example.invalid/a/b.git')).answer)
    const { prelude, body = '' } = await api.invoke(
      proxyEvent('GET', `/v1/sessions/${id}/events`, {
        headers: { ...authorised, accept: 'text/event-stream' },
      }),
      6_000,
    )
    expect(prelude).toMatchObject({ statusCode: 200 })
    expect(prelude?.headers['content-type']).toContain('text/event-stream')
    expect(body).toContain('event: session_created')
    expect(body).toContain(JSON.stringify(intent).slice(1, -1))
    expect(body).toMatch(/\n\n$/)
  })
})

describe('the step and sweep bundles', () => {
  it('carry a session to the first step that needs a worker, and say plainly that there is none', async () => {
    const { id } = started.parse((await startSession('https://git.example.invalid/a/b.git')).answer)
    const path = `/v1/sessions/${id}/history`
    await vi.waitFor(
      async () => {
        const { body = '' } = await api.invoke(proxyEvent('GET', path, { headers: authorised }))
        expect(JSON.parse(body).executions[0].steps).toEqual(
          expect.arrayContaining([
            expect.objectContaining({ name: 'Admit', outcome: 'succeeded' }),
            expect.objectContaining({
              name: 'Preflight',
              outcome: 'failed',
              error: expect.stringMatching(/GatehouseError: .*no worker image/),
            }),
          ]),
        )
      },
      { timeout: 10_000, interval: 200 },
    )
  })

  it('sweep what is due', async () => {
    const { result } = await sweep.invoke({ 'detail-type': 'Scheduled Event' })
    expect(result).toEqual({ looked: 0, faults: 0 })
  })
})
