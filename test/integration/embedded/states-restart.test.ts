import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  DescribeExecutionCommand,
  ExecutionAlreadyExists,
  ListExecutionsCommand,
  SendTaskSuccessCommand,
  StartExecutionCommand,
  TaskTimedOut,
} from '@aws-sdk/client-sfn'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startStates } from '../../../infra/local/states/server.ts'
import { testKeys } from '../../support/keys.ts'
import { clientOf, type Fixture, statesFixture, tokenCollector } from './states-fixture.ts'
import { machines } from './states-machines.ts'

const tokens = tokenCollector()
let states: Fixture

beforeAll(async () => {
  const { steps, unguarded, echo } = machines
  states = await statesFixture(
    { steps, unguarded, echo },
    { echo: (payload) => payload, park: tokens.collect },
  )
})
afterAll(() => states.close())

const succeed = (taskToken: string, output: unknown = {}) =>
  states.sfn.send(new SendTaskSuccessCommand({ taskToken, output: JSON.stringify(output) }))
const arnOf = (name: string) => states.arns[name] ?? ''

describe('a restart', () => {
  test('keeps what ended, aborts what ran, and mends what a kill tore', async () => {
    const ended = await states.start('steps', { fail: false }, 'kept')
    await states.ended(ended)
    const before = await states.history(ended)
    const running = await states.start('unguarded', {}, 'interrupted')
    const taskToken = await tokens.next('unguarded')
    const finished = await states.start('unguarded', {}, 'ended-unlisted')
    await succeed(await tokens.next('unguarded'), 'late')
    await states.ended(finished)

    await states.restart()
    const index = join(states.directory, 'executions.jsonl')
    const lines = (await readFile(index, 'utf8')).split('\n')
    const withoutEnd = lines.filter(
      (line) => !(line.includes('"ended-unlisted"') && line.includes('"status"')),
    )
    await writeFile(index, `${withoutEnd.join('\n')}{"machine":"echo","na`)
    await appendFile(join(states.directory, 'histories', 'steps', 'kept.jsonl'), '{"id":99,"ty')
    await states.restart()

    expect(await states.ended(ended)).toMatchObject({ status: 'SUCCEEDED' })
    expect(await states.history(ended)).toEqual(before)
    expect(await states.ended(running)).toMatchObject({ status: 'ABORTED', error: 'Gatehouse.Restarted' })
    expect((await states.history(running)).at(-1)?.type).toBe('ExecutionAborted')
    expect(await states.ended(finished)).toMatchObject({ status: 'SUCCEEDED', output: { result: 'late' } })
    await expect(succeed(taskToken)).rejects.toBeInstanceOf(TaskTimedOut)
    await expect(states.start('steps', { fail: false }, 'kept')).rejects.toBeInstanceOf(
      ExecutionAlreadyExists,
    )
    await states.ended(await states.start('echo', {}, 'after-the-torn-line'))
    await states.restart()
    const { executions = [] } = await states.sfn.send(
      new ListExecutionsCommand({ stateMachineArn: arnOf('echo') }),
    )
    expect(executions[0]).toMatchObject({ name: 'after-the-torn-line', status: 'SUCCEEDED' })
  })

  test('a process killed at any moment keeps every start it answered, and ends it as ABORTED or as it ended', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'gatehouse-states-killed-'))
    const definition = {
      StartAt: 'A',
      States: { A: { Type: 'Pass', Next: 'B' }, B: { Type: 'Wait', Seconds: 0, End: true } },
    }
    const options = `{ directory: ${JSON.stringify(directory)}, region: 'us-east-1', keys: ${JSON.stringify(testKeys)}, invoke: async () => null,
      definitions: [{ name: 'short', definition: ${JSON.stringify(definition)} }] }`
    const server = new URL('../../../infra/local/states/server.ts', import.meta.url).href
    const child = spawn(
      process.execPath,
      [
        '--input-type=module',
        '--eval',
        `const { startStates } = await import(${JSON.stringify(server)})
         console.log((await startStates(${options})).endpoint)`,
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    )
    const answered: string[] = []
    try {
      const [line] = await once(child.stdout, 'data')
      const doomed = clientOf(String(line).trim())
      const stateMachineArn = 'arn:aws:states:us-east-1:000000000000:stateMachine:short'
      const starter = async (own: number) => {
        for (let round = 0; ; round += 1) {
          const name = `s${own}-${round}`
          const { executionArn = '' } = await doomed.send(
            new StartExecutionCommand({ stateMachineArn, name }),
          )
          answered.push(executionArn)
        }
      }
      setTimeout(() => child.kill('SIGKILL'), 500)
      await Promise.allSettled(Array.from({ length: 10 }, (_, own) => starter(own)))
      doomed.destroy()
    } finally {
      child.kill('SIGKILL')
    }
    expect(answered.length).toBeGreaterThan(10)

    const again = await startStates({
      keys: testKeys,
      directory,
      region: 'us-east-1',
      definitions: [{ name: 'short', definition }],
      invoke: async () => null,
    })
    const sfn = clientOf(again.endpoint)
    for (const executionArn of answered) {
      const { status, output, error } = await sfn.send(new DescribeExecutionCommand({ executionArn }))
      if (status === 'SUCCEEDED') expect(output).toBe('{}')
      else expect([status, error]).toEqual(['ABORTED', 'Gatehouse.Restarted'])
    }
    sfn.destroy()
    await again.close()
    await rm(directory, { recursive: true, force: true })
  }, 20_000)
})
