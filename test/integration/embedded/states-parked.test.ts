import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import {
  DescribeExecutionCommand,
  ExecutionAlreadyExists,
  ListExecutionsCommand,
  SendTaskFailureCommand,
  SendTaskHeartbeatCommand,
  SendTaskSuccessCommand,
  StopExecutionCommand,
  TaskTimedOut,
} from '@aws-sdk/client-sfn'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { readingOwnContext } from '../../../infra/local/states/context-paths.ts'
import { remaining } from '../../../infra/local/states/retriers.ts'
import { startStates } from '../../../infra/local/states/server.ts'
import { testKeys } from '../../support/keys.ts'
import { clientOf, type Fixture, parked, statesFixture, tokenCollector } from './states-fixture.ts'

const withContext = {
  Parameters: {
    FunctionName: 'park',
    Payload: {
      'machine.$': '$$.StateMachine.Name',
      'task_token.$': '$$.Task.Token',
      'entered.$': '$$.State.EnteredTime',
      'retry.$': '$$.State.RetryCount',
    },
  },
}
const retry = (error: string, MaxAttempts: number) => ({
  ErrorEquals: [error],
  IntervalSeconds: 1,
  MaxDelaySeconds: 1,
  MaxAttempts,
})
const caught = (...errors: string[]) => ({
  Catch: [{ ErrorEquals: errors, ResultPath: '$.caught', Next: 'Caught' }],
})
const catching = (state: object) => ({
  StartAt: 'Park',
  States: { Park: { ...state, End: true }, Caught: { Type: 'Pass', End: true } },
})

const machines = {
  gate: {
    StartAt: 'Before',
    States: {
      Before: { Type: 'Pass', Result: 'here', ResultPath: '$.was', Next: 'Park' },
      Park: parked('park', { Next: 'Look' }),
      Look: {
        Type: 'Pass',
        Parameters: {
          'input.$': '$',
          'context.$': '$$',
          'started.$': '$$.Execution.StartTime',
          'given.$': "States.Format('$$ {}', $$.Execution.Input.id)",
        },
        End: true,
      },
    },
  },
  held: catching(parked('hold', caught('States.ALL'))),
  plain: catching(parked('park', caught('States.ALL'))),
  retried: catching(
    parked('park', {
      ...withContext,
      Retry: [retry('A', 1), retry('B', 2)],
      ...caught('States.ALL'),
    }),
  ),
  timed: catching(parked('park', { TimeoutSeconds: 1, ...caught('States.Timeout') })),
  beating: catching(
    parked('park', { TimeoutSeconds: 600, HeartbeatSeconds: 2, ...caught('States.HeartbeatTimeout') }),
  ),
  whole: { ...catching(parked('park', caught('States.ALL'))), TimeoutSeconds: 1 },
  twice: {
    StartAt: 'First',
    States: { First: parked('park', { Next: 'Second' }), Second: parked('park', { End: true }) },
  },
}

const tokens = tokenCollector()
/** Ends the call of `hold` that was given a token. */
const releases = new Map<string, () => void>()
const payloads: Record<string, unknown>[] = []
let states: Fixture

beforeAll(async () => {
  states = await statesFixture(machines, {
    park: (payload) => {
      payloads.push(payload)
      tokens.collect(payload)
    },
    hold: (payload) => {
      const { promise, resolve } = Promise.withResolvers<null>()
      releases.set(String(payload.task_token), () => resolve(null))
      tokens.collect(payload)
      return promise
    },
  })
})
afterEach(() => expect(states.atWork()).toBe(0))
afterAll(() => states.close())

const succeed = (taskToken: string, output: unknown = {}) =>
  states.sfn.send(new SendTaskSuccessCommand({ taskToken, output: JSON.stringify(output) }))
const fail = (taskToken: string, error: string) =>
  states.sfn.send(new SendTaskFailureCommand({ taskToken, error, cause: 'red' }))
const stop = (executionArn: string) =>
  states.sfn.send(new StopExecutionCommand({ executionArn, error: 'Stopped' }))

/** Starts a machine and waits until it is parked; its execution and the token it waits for. */
const park = async (machine: keyof typeof machines, input: object = {}, name?: string) => {
  const arn = await states.start(machine, input, name)
  const token = await tokens.next(machine)
  await states.allParked()
  return { arn, token }
}
const typesOf = async (arn: string) => (await states.history(arn)).map((event) => event.type ?? '')
/** Ends what a test leaves running, and waits until its end is on disk. */
const gone = async (arn: string) => {
  await states.ended(arn)
  await states.allParked()
}

const task = ['TaskScheduled', 'TaskStarted', 'TaskSubmitted']
const untilParked = ['ExecutionStarted', 'TaskStateEntered', ...task]

describe('an answer', () => {
  test('goes on where the execution waited, with its input, its context and its history without a gap', async () => {
    const { arn, token } = await park('gate', { id: 's1' })
    const before = await states.history(arn)
    await succeed(token, { yes: true })
    const { output } = await states.ended(arn)
    const { startDate } = await states.sfn.send(new DescribeExecutionCommand({ executionArn: arn }))
    const started = startDate?.toISOString()
    expect(output).toEqual({
      input: { id: 's1', was: 'here', result: { yes: true } },
      started,
      given: '$$ s1',
      context: {
        Execution: {
          Id: arn,
          Input: { id: 's1' },
          Name: arn.split(':').at(-1),
          RoleArn: expect.stringContaining('role'),
          StartTime: started,
        },
        State: { Name: 'Look', EnteredTime: expect.stringMatching(/Z$/), RetryCount: 0 },
        StateMachine: { Id: states.arns.gate, Name: 'gate' },
        Task: { Token: expect.any(String) },
      },
    })
    const events = await states.history(arn)
    expect(events.slice(0, before.length)).toEqual(before)
    expect(events.map((event) => event.id)).toEqual(events.map((_, at) => at + 1))
    expect(events.map((event) => event.type)).toEqual([
      ...['ExecutionStarted', 'PassStateEntered', 'PassStateExited', 'TaskStateEntered', ...task],
      ...['TaskSucceeded', 'TaskStateExited', 'PassStateEntered', 'PassStateExited', 'ExecutionSucceeded'],
    ])
    expect(events[8]?.stateExitedEventDetails).toMatchObject({
      name: 'Park',
      output: '{"id":"s1","was":"here","result":{"yes":true}}',
    })
    await gone(arn)
  })

  test('that is a failure is caught as ever', async () => {
    const { arn, token } = await park('plain', { id: 1 })
    await fail(token, 'Judged')
    expect((await states.ended(arn)).output).toEqual({ id: 1, caught: { Error: 'Judged', Cause: 'red' } })
    await gone(arn)
  })

  test('finds the retriers used as often as they were', async () => {
    payloads.length = 0
    const arn = await states.start('retried')
    for (const error of ['B', 'A', 'B', 'A']) {
      const token = await tokens.next('retried')
      await states.allParked()
      await fail(token, error)
    }
    expect((await states.ended(arn)).output).toEqual({ caught: { Error: 'A', Cause: 'red' } })
    expect(payloads.map(({ retry }) => retry)).toEqual([0, 1, 2, 3])
    expect(new Set(payloads.map(({ entered }) => entered)).size).toBe(1)
    const types = await typesOf(arn)
    expect(types.filter((type) => type === 'TaskStateEntered')).toHaveLength(1)
    expect(types.filter((type) => type === 'TaskSubmitted')).toHaveLength(4)
    await gone(arn)
  })

  test('wins alone against others at the same time', async () => {
    const { arn, token } = await park('plain')
    const answers = await Promise.allSettled(
      Array.from({ length: 12 }, (_, index) =>
        index % 2 ? succeed(token, index) : fail(token, `F${index}`),
      ),
    )
    const winners = answers.flatMap(({ status }, index) => (status === 'fulfilled' ? [index] : []))
    expect(winners).toHaveLength(1)
    for (const answer of answers) {
      if (answer.status === 'rejected') expect(answer.reason).toBeInstanceOf(TaskTimedOut)
    }
    const [winner = 0] = winners
    expect((await states.ended(arn)).output).toMatchObject(
      winner % 2 ? { result: winner } : { caught: { Error: `F${winner}` } },
    )
    await gone(arn)
  })

  test('at any moment around the parking is taken', async () => {
    for (let round = 0; round < 60; round += 1) {
      const arn = await states.start('held', { round })
      const token = await tokens.next('held')
      const answered = succeed(token)
      for (let turn = 0; turn < round * 5; turn += 1) await nextTurn()
      releases.get(token)?.()
      await answered
      expect((await states.ended(arn)).status).toBe('SUCCEEDED')
      const events = await states.history(arn)
      expect(events.map((event) => event.id)).toEqual(events.map((_, at) => at + 1))
      await gone(arn)
    }
  })

  test('of an earlier attempt is refused, and wakes nothing', async () => {
    const { arn, token } = await park('twice')
    await succeed(token)
    const second = await tokens.next('twice')
    await states.allParked()
    await expect(succeed(token)).rejects.toBeInstanceOf(TaskTimedOut)
    await expect(states.sfn.send(new SendTaskHeartbeatCommand({ taskToken: token }))).rejects.toBeInstanceOf(
      TaskTimedOut,
    )
    expect(states.atWork()).toBe(0)
    await succeed(second, 2)
    expect((await states.ended(arn)).output).toEqual({ result: 2 })
    await gone(arn)
  })

  test('is refused by a fault of ours while the history can’t be read, and taken when it can', async () => {
    const { arn, token } = await park('plain', {}, 'damaged')
    const path = join(states.directory, 'histories', 'plain', 'damaged.jsonl')
    const whole = await readFile(path)
    await writeFile(path, whole.subarray(0, whole.length / 2))
    await expect(succeed(token)).rejects.toMatchObject({ $metadata: { httpStatusCode: 500 } })
    await writeFile(path, whole)
    await succeed(token, 'again')
    expect((await states.ended(arn)).output).toEqual({ result: 'again' })
    await gone(arn)
  })
})

describe('time', () => {
  test('a time-out ends the task by its name, and its token is dead', async () => {
    const { arn, token } = await park('timed')
    expect((await states.ended(arn)).output).toEqual({ caught: { Error: 'States.Timeout', Cause: '' } })
    await expect(succeed(token)).rejects.toBeInstanceOf(TaskTimedOut)
    expect((await typesOf(arn)).slice(0, 6)).toEqual([...untilParked, 'TaskTimedOut'])
    await gone(arn)
  })

  test('heartbeats put their deadline off without waking; the one that is missed ends the task', async () => {
    const { arn, token } = await park('beating')
    const beatUntil = Date.now() + 4_000
    let beats = 0
    while (Date.now() < beatUntil) {
      await states.sfn.send(new SendTaskHeartbeatCommand({ taskToken: token }))
      expect(states.atWork()).toBe(0)
      beats += 1
      await sleep(200)
    }
    expect(beats).toBeGreaterThan(2)
    expect(await typesOf(arn)).toEqual(untilParked)
    expect((await states.ended(arn)).output).toMatchObject({ caught: { Error: 'States.HeartbeatTimeout' } })
    await gone(arn)
  })

  test('heartbeats at any moment around the parking are taken', async () => {
    for (let round = 0; round < 10; round += 1) {
      const arn = await states.start('held', { round })
      const taskToken = await tokens.next('held')
      const beats = Array.from({ length: 50 }, async (_, turns) => {
        for (let turn = 0; turn < turns; turn += 1) await nextTurn()
        await states.sfn.send(new SendTaskHeartbeatCommand({ taskToken }))
      })
      for (let turn = 0; turn < 10 * round; turn += 1) await nextTurn()
      releases.get(taskToken)?.()
      await Promise.all(beats)
      await states.allParked()
      await succeed(taskToken)
      await gone(arn)
    }
  })

  test('the execution’s own time-out ends it', async () => {
    const { arn, token } = await park('whole')
    expect(await states.ended(arn)).toMatchObject({ status: 'TIMED_OUT', error: 'States.Timeout' })
    expect(await typesOf(arn)).toEqual([...untilParked, 'ExecutionTimedOut'])
    await expect(succeed(token)).rejects.toBeInstanceOf(TaskTimedOut)
    await gone(arn)
  })
})

describe('a stop', () => {
  test('ends a parked execution; its token is dead', async () => {
    const { arn, token } = await park('plain')
    await stop(arn)
    expect(await states.ended(arn)).toMatchObject({ status: 'ABORTED', error: 'Stopped' })
    expect(await typesOf(arn)).toEqual([...untilParked, 'ExecutionAborted'])
    await expect(succeed(token)).rejects.toBeInstanceOf(TaskTimedOut)
    await gone(arn)
  })

  test('and an answer at the same time: the execution ends as the first of them says', async () => {
    for (let round = 0; round < 10; round += 1) {
      const { arn, token } = await park('plain')
      const stoppedFirst = round % 2 ? stop(arn) : undefined
      const answering = succeed(token, 'first')
      const [answered] = await Promise.allSettled([answering, stoppedFirst ?? stop(arn)])
      const { status } = await states.ended(arn)
      const types = await typesOf(arn)
      expect(['SUCCEEDED', 'ABORTED']).toContain(status)
      expect(types.includes('TaskSucceeded')).toBe(answered.status === 'fulfilled')
      expect(types.filter((type) => /^Execution(Succeeded|Aborted)$/.test(type))).toHaveLength(1)
      await gone(arn)
    }
  })
})

describe('from the outside', () => {
  test('a parked execution reads as one that runs, and reading does not wake it', async () => {
    const { arn } = await park('plain', { id: 7 }, 'read')
    const described = await states.sfn.send(new DescribeExecutionCommand({ executionArn: arn }))
    expect(described).toMatchObject({ status: 'RUNNING', input: '{"id":7}' })
    expect(described.stopDate).toBeUndefined()
    const { executions = [] } = await states.sfn.send(
      new ListExecutionsCommand({ stateMachineArn: states.arns.plain, statusFilter: 'RUNNING' }),
    )
    expect(executions.map(({ name }) => name)).toEqual(['read'])
    expect(await typesOf(arn)).toEqual(untilParked)
    expect(await states.start('plain', { id: 7 }, 'read')).toBe(arn)
    await expect(states.start('plain', { id: 8 }, 'read')).rejects.toBeInstanceOf(ExecutionAlreadyExists)
    expect(states.atWork()).toBe(0)
    await stop(arn)
    await gone(arn)
  })

  test('a process that is killed while it holds one leaves a whole history, which its end is added to', async () => {
    const { arn } = await park('plain', {}, 'killed')
    const before = await states.history(arn)
    const directory = await mkdtemp(join(tmpdir(), 'gatehouse-states-parked-'))
    await cp(states.directory, directory, { recursive: true })
    const definitions = Object.entries(machines).map(([name, definition]) => ({ name, definition }))
    const again = await startStates({
      keys: testKeys,
      directory,
      region: 'us-east-1',
      definitions,
      invoke: async () => null,
    })
    const sfn = clientOf(again.endpoint)
    const described = await sfn.send(new DescribeExecutionCommand({ executionArn: arn }))
    expect(described).toMatchObject({ status: 'ABORTED', error: 'Gatehouse.Restarted' })
    sfn.destroy()
    await again.close()
    const lines = (await readFile(join(directory, 'histories', 'plain', 'killed.jsonl'), 'utf8')).trim()
    const events = lines.split('\n').map((line) => JSON.parse(line))
    expect(events.map(({ id, type }) => [id, type])).toEqual([
      ...before.map(({ id, type }) => [id, type]),
      [before.length + 1, 'ExecutionAborted'],
    ])
    await rm(directory, { recursive: true, force: true })
    await stop(arn)
    await gone(arn)
  })
})

describe('what is handed to the interpreter', () => {
  test('of a retrier is what is left of it', () => {
    const retriers = [
      { ErrorEquals: ['A'], IntervalSeconds: 2, BackoffRate: 3, MaxAttempts: 4 },
      { ErrorEquals: ['B'] },
      { ErrorEquals: ['C'], MaxAttempts: 1 },
    ]
    expect(remaining(retriers, [])).toEqual(retriers)
    expect(remaining(retriers, [2, 0, 1])).toEqual([
      { ErrorEquals: ['A'], IntervalSeconds: 18, BackoffRate: 3, MaxAttempts: 2 },
      { ErrorEquals: ['B'] },
      { ErrorEquals: ['C'], IntervalSeconds: 2, MaxAttempts: 0 },
    ])
  })

  test('are paths into the execution’s own context, and texts as they were', () => {
    expect(
      readingOwnContext({
        InputPath: '$$.Execution.Input',
        OutputPath: '$.a',
        Result: { 'b.$': '$$' },
        Parameters: {
          'all.$': '$$',
          aPath: '$$.State',
          list: [{ 'id.$': "States.Format('it''s $$ {}', $$.Execution.Id)" }],
        },
        Choices: [
          { And: [{ Variable: '$$.State.Name', StringEquals: '$$.x' }], Next: 'N' },
          { Not: { Variable: '$.a', StringEqualsPath: '$$.State.Name' }, Next: 'N' },
        ],
      }),
    ).toEqual({
      InputPath: '$$.Context.Execution.Input',
      OutputPath: '$.a',
      Result: { 'b.$': '$$' },
      Parameters: {
        'all.$': '$$.Context',
        aPath: '$$.State',
        list: [{ 'id.$': "States.Format('it''s $$ {}', $$.Context.Execution.Id)" }],
      },
      Choices: [
        { And: [{ Variable: '$$.Context.State.Name', StringEquals: '$$.x' }], Next: 'N' },
        { Not: { Variable: '$.a', StringEqualsPath: '$$.Context.State.Name' }, Next: 'N' },
      ],
    })
  })
})
