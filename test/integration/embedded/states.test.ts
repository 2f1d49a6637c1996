import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  DescribeExecutionCommand,
  DescribeStateMachineCommand,
  ExecutionAlreadyExists,
  ExecutionDoesNotExist,
  GetExecutionHistoryCommand,
  InvalidArn,
  InvalidExecutionInput,
  InvalidName,
  InvalidOutput,
  InvalidToken,
  ListExecutionsCommand,
  ListStateMachinesCommand,
  SendTaskFailureCommand,
  SendTaskHeartbeatCommand,
  SendTaskSuccessCommand,
  StartExecutionCommand,
  StateMachineDoesNotExist,
  StopExecutionCommand,
  TaskDoesNotExist,
  TaskTimedOut,
  UpdateStateMachineCommand,
  ValidationException,
} from '@aws-sdk/client-sfn'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Tokens } from '../../../infra/local/states/tokens.ts'
import { type Fixture, statesFixture, tokenCollector } from './states-fixture.ts'
import { machines } from './states-machines.ts'

class LeaseLost extends Error {
  override name = 'LeaseLost'
}

const tokens = tokenCollector()
const attempts: unknown[] = []
let states: Fixture

beforeAll(async () => {
  states = await statesFixture(machines, {
    echo: (payload) => payload,
    nothing: () => undefined,
    park: tokens.collect,
    throws: () => {
      throw new LeaseLost('the lease is gone')
    },
    flaky: ({ attempt }) => {
      attempts.push(attempt)
      if (attempts.length < 3) throw new LeaseLost('try again')
      return 'at last'
    },
    large: () => 'x'.repeat(270_000),
    never: () => new Promise(() => {}),
  })
})
afterAll(() => states.close())

const succeed = (taskToken: string, output: unknown = {}) =>
  states.sfn.send(new SendTaskSuccessCommand({ taskToken, output: JSON.stringify(output) }))
const typesOf = async (executionArn: string) =>
  (await states.history(executionArn)).map((event) => event.type ?? '')
const arnOf = (name: string) => states.arns[name] ?? ''

describe('starting', () => {
  test('a start answers with an ARN and a date, and the execution runs to its end', async () => {
    const started = await states.sfn.send(
      new StartExecutionCommand({ stateMachineArn: arnOf('echo'), name: 'first', input: '{"id":1}' }),
    )
    expect(started.executionArn).toBe('arn:aws:states:us-east-1:000000000000:execution:echo:first')
    expect(Math.abs(Date.now() - Number(started.startDate))).toBeLessThan(5_000)
    expect(await states.ended(started.executionArn ?? '')).toMatchObject({
      status: 'SUCCEEDED',
      output: { id: 1, result: { answer: { id: 1 } } },
    })
  })

  test('a repeat with the same name and input is the same execution while it runs, and refused afterwards', async () => {
    const command = new StartExecutionCommand({
      stateMachineArn: arnOf('parked'),
      name: 'twice',
      input: '{"a":1}',
    })
    const [first, second] = await Promise.all([states.sfn.send(command), states.sfn.send(command)])
    expect(second.executionArn).toBe(first.executionArn)
    expect(second.startDate).toEqual(first.startDate)
    const other = new StartExecutionCommand({
      stateMachineArn: arnOf('parked'),
      name: 'twice',
      input: '{"a":2}',
    })
    await expect(states.sfn.send(other)).rejects.toBeInstanceOf(ExecutionAlreadyExists)
    await succeed(await tokens.next('parked'))
    await states.ended(first.executionArn ?? '')
    await expect(states.sfn.send(command)).rejects.toBeInstanceOf(ExecutionAlreadyExists)
  })

  test('a start without a name gets one', async () => {
    expect(await states.start('echo')).toMatch(/:execution:echo:[0-9a-f-]{36}$/)
  })

  test.each([
    ['a name that is far too long'.repeat(4)],
    ['with space'],
    ['a/b'],
    ['a:b'],
    ['tab\t'],
    ['a*'],
    [''],
  ])('the name %j is refused', async (name) => {
    const command = new StartExecutionCommand({ stateMachineArn: arnOf('echo'), name })
    await expect(states.sfn.send(command)).rejects.toBeInstanceOf(InvalidName)
  })

  test('odd but legal names are kept apart on disk', async () => {
    for (const name of ['..', 'Case', 'case', 'ünïcödé-名前'])
      await states.ended(await states.start('echo', {}, name))
    expect(await typesOf('arn:aws:states:us-east-1:000000000000:execution:echo:..')).toHaveLength(7)
    expect(await typesOf('arn:aws:states:us-east-1:000000000000:execution:echo:Case')).toHaveLength(7)
    expect(await readdir(join(states.directory, 'histories'))).toContain('echo')
  })

  test.each([['{not json'], [`"${'x'.repeat(262_144)}"`]])('input %.12s is refused', async (input) => {
    const command = new StartExecutionCommand({ stateMachineArn: arnOf('echo'), input })
    await expect(states.sfn.send(command)).rejects.toBeInstanceOf(InvalidExecutionInput)
  })

  test('an unknown machine and a malformed ARN are told apart', async () => {
    const unknown = arnOf('echo').replace(/echo$/, 'nobody')
    await expect(
      states.sfn.send(new StartExecutionCommand({ stateMachineArn: unknown })),
    ).rejects.toBeInstanceOf(StateMachineDoesNotExist)
    await expect(
      states.sfn.send(new StartExecutionCommand({ stateMachineArn: 'arn:of:nothing' })),
    ).rejects.toBeInstanceOf(InvalidArn)
  })
})

describe('running', () => {
  test('the history of a task reads as on AWS', async () => {
    const events = await (async () => {
      const arn = await states.start('parked', { id: 's1' }, 'history')
      await succeed(await tokens.next('parked'), { done: true })
      await states.ended(arn)
      return states.history(arn)
    })()
    expect(events.map((event) => [event.id, event.previousEventId, event.type])).toEqual([
      [1, 0, 'ExecutionStarted'],
      [2, 0, 'TaskStateEntered'],
      [3, 2, 'TaskScheduled'],
      [4, 3, 'TaskStarted'],
      [5, 4, 'TaskSubmitted'],
      [6, 5, 'TaskSucceeded'],
      [7, 6, 'TaskStateExited'],
      [8, 7, 'ExecutionSucceeded'],
    ])
    const task = { resourceType: 'lambda', resource: 'invoke.waitForTaskToken' }
    expect(events[0]?.executionStartedEventDetails).toMatchObject({ input: '{"id":"s1"}' })
    expect(events[1]?.stateEnteredEventDetails).toMatchObject({ name: 'Only', input: '{"id":"s1"}' })
    expect(events[2]?.taskScheduledEventDetails).toMatchObject({
      ...task,
      region: 'us-east-1',
      timeoutInSeconds: 600,
      heartbeatInSeconds: 300,
      parameters: expect.stringContaining('"FunctionName":"park"'),
    })
    expect(events[3]?.taskStartedEventDetails).toEqual(task)
    expect(events[4]?.taskSubmittedEventDetails).toMatchObject({
      ...task,
      output: '{"ExecutedVersion":"$LATEST","Payload":null,"StatusCode":200}',
    })
    expect(events[5]?.taskSucceededEventDetails).toMatchObject({ ...task, output: '{"done":true}' })
    expect(events[6]?.stateExitedEventDetails).toMatchObject({ output: '{"id":"s1","result":{"done":true}}' })
    expect(events[7]?.executionSucceededEventDetails).toMatchObject({ outputDetails: { truncated: false } })
    expect(events.every((event) => event.timestamp instanceof Date)).toBe(true)
  })

  test('a task behind states that take no time is scheduled after its own entry, by its own input', async () => {
    const arn = await states.start('behind-choices')
    await succeed(await tokens.next('behind-choices'))
    await states.ended(arn)
    const events = (await states.history(arn)).slice(6)
    expect(events.map((event) => event.type)).toEqual([
      ...['ChoiceStateEntered', 'ChoiceStateExited', 'PassStateEntered', 'PassStateExited'],
      ...['TaskStateEntered', 'TaskScheduled', 'TaskStarted', 'TaskSubmitted', 'TaskSucceeded'],
      ...['TaskStateExited', 'ExecutionSucceeded'],
    ])
    expect(events[5]?.taskScheduledEventDetails).toMatchObject({ timeoutInSeconds: 7 })
  })

  test('Pass, Wait, Choice and Succeed leave their own events', async () => {
    const arn = await states.start('steps', { fail: false })
    expect((await states.ended(arn)).output).toEqual({ fail: false, prepared: { go: true } })
    expect(await typesOf(arn)).toEqual([
      'ExecutionStarted',
      ...['Pass', 'Wait', 'Choice', 'Succeed'].flatMap((type) => [
        `${type}StateEntered`,
        `${type}StateExited`,
      ]),
      'ExecutionSucceeded',
    ])
  })

  test('a Fail state fails the execution by its own words', async () => {
    const arn = await states.start('steps', { fail: true })
    expect(await states.ended(arn)).toMatchObject({
      status: 'FAILED',
      error: 'Refused',
      cause: 'because it was asked to',
    })
    expect((await typesOf(arn)).slice(-2)).toEqual(['FailStateEntered', 'ExecutionFailed'])
  })

  test('the context object names execution, state and machine', async () => {
    const arn = await states.start('context', { a: 1 }, 'in-context')
    expect((await states.ended(arn)).output).toEqual({
      id: arn,
      name: 'in-context',
      started: expect.stringMatching(/^\d{4}-.*Z$/),
      input: { a: 1 },
      state: 'Only',
      entered: expect.stringMatching(/^\d{4}-.*Z$/),
      machine: 'context',
      machineId: arnOf('context'),
    })
  })

  test('a function that answers nothing answers null', async () => {
    expect((await states.ended(await states.start('nothing'))).output).toEqual({ result: { answer: null } })
  })

  test.each(['throws', 'throws-at-once'])(
    '%s: a function that throws fails its task by the error’s name',
    async (name) => {
      const arn = await states.start(name)
      const caught = (await states.ended(arn)).output
      expect(caught).toEqual({
        caught: { Error: 'LeaseLost', Cause: '{"errorType":"LeaseLost","errorMessage":"the lease is gone"}' },
      })
      expect(await typesOf(arn)).toContain('TaskFailed')
    },
  )

  test('a result over the quota is States.DataLimitExceeded, which only its own name catches', async () => {
    const [wildcard, named] = await Promise.all([states.start('large'), states.start('large-named')])
    expect(await states.ended(wildcard)).toMatchObject({
      status: 'FAILED',
      error: 'States.DataLimitExceeded',
    })
    expect(await states.ended(named)).toMatchObject({
      status: 'SUCCEEDED',
      output: { caught: { Error: 'States.DataLimitExceeded' } },
    })
  })

  test('an output that grows over the quota at the transition fails the execution', async () => {
    expect(await states.ended(await states.start('growing', { text: 'x'.repeat(150_000) }))).toMatchObject({
      status: 'FAILED',
      error: 'States.DataLimitExceeded',
    })
  })

  test('a limit that the input lacks fails the execution instead of waiting for ever', async () => {
    expect(await states.ended(await states.start('heartbeat-by-path', {}))).toMatchObject({
      status: 'FAILED',
      error: 'States.Runtime',
    })
  })

  test('the 25,000th event is the failure of a machine that never ends', async () => {
    const arn = await states.start('loop')
    expect(await states.ended(arn)).toMatchObject({
      status: 'FAILED',
      error: 'States.Runtime',
      cause: 'The execution reached the maximum number of history events (25000).',
    })
    const { events = [] } = await states.sfn.send(
      new GetExecutionHistoryCommand({ executionArn: arn, reverseOrder: true, maxResults: 1 }),
    )
    expect(events[0]).toMatchObject({ id: 25_000, type: 'ExecutionFailed' })
  })
})

describe('task tokens', () => {
  test('of racing answers exactly one wins', async () => {
    const arn = await states.start('unguarded')
    const taskToken = await tokens.next('unguarded')
    const answers = await Promise.allSettled(
      Array.from({ length: 12 }, (_, index) => succeed(taskToken, { index })),
    )
    const winners = answers.flatMap((answer, index) => (answer.status === 'fulfilled' ? [index] : []))
    expect(winners).toHaveLength(1)
    for (const answer of answers) {
      if (answer.status === 'rejected') expect(answer.reason).toBeInstanceOf(TaskTimedOut)
    }
    expect((await states.ended(arn)).output).toEqual({ result: { index: winners[0] } })
  })

  test('a failure is caught by its error', async () => {
    const arn = await states.start('caught-failure', { id: 1 })
    const taskToken = await tokens.next('caught-failure')
    await states.sfn.send(new SendTaskFailureCommand({ taskToken, error: 'Judged', cause: 'red' }))
    expect((await states.ended(arn)).output).toEqual({ id: 1, caught: { Error: 'Judged', Cause: 'red' } })
  })

  test('a token that was never given out is InvalidToken; one of an unknown execution TaskDoesNotExist', async () => {
    const minted = (await Tokens.open(join(states.directory, 'token-key'))).mint({
      machine: 'echo',
      name: 'never',
    })
    const forged = Buffer.from('AAAA["parked","history","x"]').toString('base64url')
    for (const taskToken of ['nonsense', forged, `${minted}A`, `${minted.slice(0, -4)}AAAA`]) {
      await expect(succeed(taskToken)).rejects.toBeInstanceOf(InvalidToken)
    }
    await expect(succeed(minted)).rejects.toBeInstanceOf(TaskDoesNotExist)
  })

  test('an output that is no JSON, or too large, is InvalidOutput and leaves the task waiting', async () => {
    const arn = await states.start('unguarded')
    const taskToken = await tokens.next('unguarded')
    for (const output of ['{', `"${'x'.repeat(262_144)}"`]) {
      await expect(states.sfn.send(new SendTaskSuccessCommand({ taskToken, output }))).rejects.toBeInstanceOf(
        InvalidOutput,
      )
    }
    await succeed(taskToken)
    await states.ended(arn)
  })
})

describe.concurrent('time', () => {
  test('Retry tries again, counts, and each attempt is in the history', async () => {
    const arn = await states.start('flaky')
    expect((await states.ended(arn)).output).toEqual({ result: { answer: 'at last' } })
    expect(attempts).toEqual([0, 1, 2])
    const types = await typesOf(arn)
    expect(types.filter((type) => type === 'TaskScheduled')).toHaveLength(3)
    expect(types.filter((type) => type === 'TaskFailed')).toHaveLength(2)
    expect(types.filter((type) => type === 'TaskStateEntered')).toHaveLength(1)
  })

  test('a missed time-out is States.Timeout, for Catch by name and not for States.TaskFailed', async () => {
    const [named, taskFailed] = await Promise.all([
      states.start('timeout'),
      states.start('timeout-is-no-task-failure'),
    ])
    expect((await states.ended(named)).output).toEqual({ caught: { Error: 'States.Timeout', Cause: '' } })
    expect(await states.ended(taskFailed)).toMatchObject({ status: 'FAILED', error: 'States.Timeout' })
    const event = (await states.history(named)).find(({ type }) => type === 'TaskTimedOut')
    expect(event?.taskTimedOutEventDetails).toEqual({
      resourceType: 'lambda',
      resource: 'invoke',
      error: 'States.Timeout',
    })
  })

  test('heartbeats keep a task alive; without them it is States.HeartbeatTimeout and the token is dead', async () => {
    const arn = await states.start('heartbeat')
    const taskToken = await tokens.next('heartbeat')
    for (let beats = 0; beats < 4; beats += 1) {
      await sleep(400)
      await states.sfn.send(new SendTaskHeartbeatCommand({ taskToken }))
    }
    expect((await states.ended(arn)).output).toEqual({
      caught: { Error: 'States.HeartbeatTimeout', Cause: '' },
    })
    await expect(states.sfn.send(new SendTaskHeartbeatCommand({ taskToken }))).rejects.toBeInstanceOf(
      TaskTimedOut,
    )
    await expect(succeed(taskToken)).rejects.toBeInstanceOf(TaskTimedOut)
  })

  test('a heartbeat taken from the input is kept, and States.Timeout catches its miss', async () => {
    const arn = await states.start('heartbeat-by-path', { limits: { all: 30, beat: 1 } })
    await tokens.next('heartbeat-by-path')
    expect((await states.ended(arn)).output).toMatchObject({ caught: { Error: 'States.HeartbeatTimeout' } })
  })

  test('a wait longer than can be timed fails at once instead of passing at once', async () => {
    const [short, long] = await Promise.all([
      states.start('waiting-by-path', { seconds: 0 }),
      states.start('waiting-by-path', { seconds: 2_147_484 }),
    ])
    expect(await states.ended(short)).toMatchObject({ status: 'SUCCEEDED' })
    expect(await states.ended(long)).toMatchObject({ status: 'FAILED', error: 'States.Runtime' })
  })

  test('a machine that runs too long is TIMED_OUT, and its task’s token is dead', async () => {
    const arn = await states.start('whole-timeout')
    const taskToken = await tokens.next('whole-timeout')
    expect(await states.ended(arn)).toMatchObject({ status: 'TIMED_OUT' })
    expect((await typesOf(arn)).at(-1)).toBe('ExecutionTimedOut')
    await expect(succeed(taskToken)).rejects.toBeInstanceOf(TaskTimedOut)
  })

  test('each attempt has a token of its own', async () => {
    const arn = await states.start('parked-again')
    const first = await tokens.next('parked-again')
    await states.sfn.send(new SendTaskFailureCommand({ taskToken: first, error: 'Lost' }))
    const second = await tokens.next('parked-again')
    expect(second).not.toBe(first)
    expect(second).toMatch(/^AQ?[\w-]+$/)
    await expect(succeed(first)).rejects.toBeInstanceOf(TaskTimedOut)
    await succeed(second)
    expect((await states.ended(arn)).status).toBe('SUCCEEDED')
  })
})

describe('stopping', () => {
  test('a stopped execution is ABORTED with its reason, and late results change nothing', async () => {
    const executionArn = await states.start('unguarded')
    const taskToken = await tokens.next('unguarded')
    const stop = new StopExecutionCommand({ executionArn, error: 'Cancelled', cause: 'by its owner' })
    const { stopDate } = await states.sfn.send(stop)
    expect(await states.ended(executionArn)).toMatchObject({
      status: 'ABORTED',
      error: 'Cancelled',
      cause: 'by its owner',
    })
    await expect(succeed(taskToken)).rejects.toBeInstanceOf(TaskTimedOut)
    expect((await states.sfn.send(stop)).stopDate).toEqual(stopDate)
    expect((await typesOf(executionArn)).at(-1)).toBe('ExecutionAborted')
  })

  test('a wait ends with its execution', async () => {
    const executionArn = await states.start('waiting')
    await states.sfn.send(new StopExecutionCommand({ executionArn }))
    expect(await states.ended(executionArn)).toMatchObject({ status: 'ABORTED' })
    expect(await typesOf(executionArn)).toEqual(['ExecutionStarted', 'WaitStateEntered', 'ExecutionAborted'])
  })
})

describe('reading', () => {
  test('histories come in pages, both ways, with and without data', async () => {
    const executionArn = await states.start('steps', { fail: false })
    await states.ended(executionArn)
    const read = async (reverseOrder: boolean) => {
      const ids: (number | undefined)[] = []
      let nextToken: string | undefined
      do {
        const page = await states.sfn.send(
          new GetExecutionHistoryCommand({ executionArn, reverseOrder, maxResults: 3, nextToken }),
        )
        ids.push(...(page.events ?? []).map((event) => event.id))
        nextToken = page.nextToken
      } while (nextToken)
      return ids
    }
    expect(await read(false)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    expect(await read(true)).toEqual([10, 9, 8, 7, 6, 5, 4, 3, 2, 1])
    const bare = await states.sfn.send(
      new GetExecutionHistoryCommand({ executionArn, includeExecutionData: false }),
    )
    expect(bare.events?.[1]?.stateEnteredEventDetails).toEqual({ name: 'Prepare' })
    const foreign = new GetExecutionHistoryCommand({ executionArn, nextToken: 'bm9uc2Vuc2U' })
    await expect(states.sfn.send(foreign)).rejects.toBeInstanceOf(InvalidToken)
    const tooMany = new GetExecutionHistoryCommand({ executionArn, maxResults: 1_001 })
    await expect(states.sfn.send(tooMany)).rejects.toBeInstanceOf(ValidationException)
  })

  test('executions are listed newest first, by status, in pages that new starts don’t shift', async () => {
    const names = ['p1', 'p2', 'p3', 'p4', 'p5']
    for (const name of names) await states.ended(await states.start('context', {}, name))
    const list = (more: object) =>
      states.sfn.send(new ListExecutionsCommand({ stateMachineArn: arnOf('context'), ...more }))
    const first = await list({ maxResults: 2, statusFilter: 'SUCCEEDED' })
    await states.ended(await states.start('context', {}, 'p6'))
    const second = await list({ maxResults: 2, statusFilter: 'SUCCEEDED', nextToken: first.nextToken })
    expect([...(first.executions ?? []), ...(second.executions ?? [])].map((item) => item.name)).toEqual([
      'p5',
      'p4',
      'p3',
      'p2',
    ])
    expect((await list({ statusFilter: 'FAILED' })).executions).toEqual([])
    await expect(list({ nextToken: first.nextToken })).rejects.toBeInstanceOf(InvalidToken)
    await expect(list({ statusFilter: 'ODD' })).rejects.toBeInstanceOf(ValidationException)
  })

  test('machines are listed and described with the definition they were given', async () => {
    const { stateMachines = [] } = await states.sfn.send(new ListStateMachinesCommand({}))
    expect(stateMachines.map((machine) => machine.name)).toEqual(Object.keys(machines))
    const described = await states.sfn.send(
      new DescribeStateMachineCommand({ stateMachineArn: arnOf('parked') }),
    )
    expect(JSON.parse(described.definition ?? '')).toEqual(machines.parked)
    expect(described).toMatchObject({ status: 'ACTIVE', type: 'STANDARD', name: 'parked' })
  })

  test('an unknown execution is ExecutionDoesNotExist, a malformed ARN InvalidArn', async () => {
    const executionArn = 'arn:aws:states:us-east-1:000000000000:execution:echo:nobody'
    for (const answer of [
      states.sfn.send(new DescribeExecutionCommand({ executionArn })),
      states.sfn.send(new GetExecutionHistoryCommand({ executionArn })),
      states.sfn.send(new StopExecutionCommand({ executionArn })),
    ]) {
      await expect(answer).rejects.toBeInstanceOf(ExecutionDoesNotExist)
    }
    await expect(
      states.sfn.send(new DescribeExecutionCommand({ executionArn: arnOf('echo') })),
    ).rejects.toBeInstanceOf(InvalidArn)
  })

  test('every other operation is refused by its name', async () => {
    const command = new UpdateStateMachineCommand({
      stateMachineArn: arnOf('echo'),
      roleArn: 'arn:aws:iam::0:role/x',
    })
    await expect(states.sfn.send(command)).rejects.toMatchObject({
      name: 'UnknownOperationException',
      message: expect.stringContaining('UpdateStateMachine'),
      $metadata: { httpStatusCode: 400 },
    })
  })

  test('it listens on the loopback address only', () => {
    expect(new URL(states.endpoint).hostname).toBe('127.0.0.1')
  })
})
