import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { HttpRequest } from '@smithy/core/protocols'
import { Hash } from '@smithy/core/serde'
import { SignatureV4 } from '@smithy/signature-v4'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { testKeys } from '../../support/keys.ts'
import { type Fixture, parked, statesFixture, tokenCollector } from './states-fixture.ts'

const run = promisify(execFile)
const tokens = tokenCollector()
let states: Fixture

beforeAll(async () => {
  states = await statesFixture(
    { waiting: { StartAt: 'Wait', States: { Wait: { ...parked('park'), End: true } } } },
    { park: tokens.collect },
  )
})
afterAll(() => states.close())

interface Client {
  call(operation: string, parameters: Record<string, string>): Promise<Record<string, unknown>>
  /** The exception's name. */
  failure(operation: string, parameters: Record<string, string>): Promise<string | undefined>
}

const answer = z.record(z.string(), z.unknown())

/** A stranger's client: the AWS command line where there is one, the bare protocol elsewhere. */
async function strangersClient(): Promise<Client> {
  const program = process.env.GATEHOUSE_AWS_CLI ?? 'aws'
  const installed = await run(program, ['--version']).then(
    () => true,
    () => false,
  )
  return installed ? commandLine(program) : bareProtocol()
}

/** A call by nothing but the protocol and the signer. */
async function signed(operation: string, body: string): Promise<Response> {
  const { host, hostname, port } = new URL(states.endpoint)
  const signer = new SignatureV4({
    ...{ credentials: testKeys, region: 'us-east-1', service: 'states' },
    sha256: Hash.bind(null, 'sha256'),
  })
  const { headers } = await signer.sign(
    new HttpRequest({
      ...{ method: 'POST', protocol: 'http:', hostname, port: Number(port), path: '/', body },
      headers: {
        host,
        'content-type': 'application/x-amz-json-1.0',
        'x-amz-target': `AWSStepFunctions.${operation}`,
      },
    }),
  )
  return fetch(states.endpoint, { method: 'POST', headers, body })
}

const kebab = (name: string) =>
  name.replace(/[A-Z]/g, (letter, at) => `${at > 0 ? '-' : ''}${letter.toLowerCase()}`)

function commandLine(program: string): Client {
  const invokeCli = (operation: string, parameters: Record<string, string>) =>
    run(
      program,
      [
        'stepfunctions',
        kebab(operation),
        ...['--endpoint-url', states.endpoint, '--region', 'us-east-1', '--output', 'json'],
        ...Object.entries(parameters).flatMap(([name, value]) => [
          // The program's own --output says how it prints.
          name === 'output' ? '--task-output' : `--${kebab(name)}`,
          value,
        ]),
      ],
      {
        env: {
          PATH: process.env.PATH,
          HOME: process.env.HOME,
          AWS_ACCESS_KEY_ID: testKeys.accessKeyId,
          AWS_SECRET_ACCESS_KEY: testKeys.secretAccessKey,
          AWS_MAX_ATTEMPTS: '1',
        },
      },
    )
  return {
    async call(operation, parameters) {
      const { stdout } = await invokeCli(operation, parameters)
      return answer.parse(stdout.trim() === '' ? {} : JSON.parse(stdout))
    },
    async failure(operation, parameters) {
      return invokeCli(operation, parameters).then(
        () => undefined,
        (error: { stderr?: string }) => /An error occurred \((\w+)\)/.exec(error.stderr ?? '')?.[1],
      )
    },
  }
}

function bareProtocol(): Client {
  const post = async (operation: string, parameters: Record<string, string>) => {
    const response = await signed(operation, JSON.stringify(parameters))
    return { status: response.status, body: answer.parse(await response.json()) }
  }
  return {
    async call(operation, parameters) {
      const { status, body } = await post(operation, parameters)
      expect(status).toBe(200)
      return body
    },
    async failure(operation, parameters) {
      const { status, body } = await post(operation, parameters)
      return status === 400 ? String(body.__type).split('#')[1] : undefined
    },
  }
}

test('a client that is not the SDK starts, answers, reads and is refused by name', async () => {
  const client = await strangersClient()
  const start = { stateMachineArn: states.arns.waiting ?? '', name: 'stranger', input: '{"id": "s1"}' }
  const { executionArn } = await client.call('StartExecution', start)
  const execution = { executionArn: String(executionArn) }
  await client.call('SendTaskSuccess', { taskToken: await tokens.next('waiting'), output: '"yes"' })
  expect((await states.ended(execution.executionArn)).output).toEqual({ id: 's1', result: 'yes' })

  const [history, repeated] = await Promise.all([
    client.call('GetExecutionHistory', execution),
    client.failure('StartExecution', start),
  ])
  expect(repeated).toBe('ExecutionAlreadyExists')
  expect(
    z
      .array(z.object({ type: z.string() }))
      .parse(history.events)
      .at(-1)?.type,
  ).toBe('ExecutionSucceeded')
}, 60_000)

test('the bare protocol answers with its content type, request id and error form', async () => {
  const response = await signed('CreateStateMachine', '{}')
  expect(response.status).toBe(400)
  expect(response.headers.get('content-type')).toBe('application/x-amz-json-1.0')
  expect(response.headers.get('x-amzn-requestid')).toMatch(/^[0-9a-f-]{36}$/)
  expect(await response.json()).toEqual({
    __type: expect.stringMatching(/#UnknownOperationException$/),
    message: expect.stringContaining('CreateStateMachine'),
  })
  expect((await fetch(states.endpoint)).status).toBe(400)
})
