import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import {
  DescribeExecutionCommand,
  GetExecutionHistoryCommand,
  type HistoryEvent,
  SFNClient,
  StartExecutionCommand,
} from '@aws-sdk/client-sfn'
import { startStates } from '../../../infra/local/states/server.ts'
import { testKeys } from '../../support/keys.ts'

/** Functions by name; a task's Payload in, its answer out. */
export type Functions = Record<string, (payload: Record<string, unknown>) => unknown>

export interface Fixture {
  sfn: SFNClient
  endpoint: string
  arns: Record<string, string>
  directory: string
  /** Starts a machine and gives the execution's ARN. */
  start(machine: string, input?: unknown, name?: string): Promise<string>
  /** Waits until the execution has ended, and describes it. */
  ended(executionArn: string): Promise<{
    status?: string | undefined
    error?: string | undefined
    cause?: string | undefined
    output: unknown
  }>
  history(executionArn: string): Promise<HistoryEvent[]>
  /** How many executions are at work in memory; the others that run are parked. */
  atWork(): number
  /** Waits until whatever runs waits for a task token and is parked. */
  allParked(): Promise<void>
  /** Ends the endpoint and starts it again on the same folder. */
  restart(): Promise<void>
  close(): Promise<void>
}

export const clientOf = (endpoint: string) =>
  new SFNClient({
    endpoint,
    region: 'us-east-1',
    credentials: testKeys,
    maxAttempts: 1,
  })

export async function statesFixture(
  machines: Record<string, object>,
  functions: Functions,
): Promise<Fixture> {
  const directory = await mkdtemp(join(tmpdir(), 'gatehouse-states-'))
  const open = () =>
    startStates({
      keys: testKeys,
      directory,
      region: 'us-east-1',
      definitions: Object.entries(machines).map(([name, definition]) => ({ name, definition })),
      invoke: async (functionName, payload) => {
        const called = functions[functionName]
        if (!called) throw new Error(`no function ${functionName}`)
        return called(Object.fromEntries(Object.entries(payload ?? {})))
      },
    })
  let states = await open()
  const fixture: Fixture = {
    directory,
    sfn: clientOf(states.endpoint),
    endpoint: states.endpoint,
    arns: states.stateMachineArns,
    async start(machine, input = {}, name) {
      const { executionArn = '' } = await fixture.sfn.send(
        new StartExecutionCommand({
          stateMachineArn: fixture.arns[machine],
          input: JSON.stringify(input),
          name,
        }),
      )
      return executionArn
    },
    async ended(executionArn) {
      const describe = () => fixture.sfn.send(new DescribeExecutionCommand({ executionArn }))
      let described = await describe()
      while (described.status === 'RUNNING') {
        await sleep(10)
        described = await describe()
      }
      const { status, error, cause, output } = described
      return { status, error, cause, output: output === undefined ? undefined : JSON.parse(output) }
    },
    async history(executionArn) {
      const { events = [] } = await fixture.sfn.send(
        new GetExecutionHistoryCommand({ executionArn, maxResults: 1_000 }),
      )
      return events
    },
    atWork: () => states.atWork(),
    async allParked() {
      while (states.atWork() > 0) await nextTurn()
    },
    async restart() {
      fixture.sfn.destroy()
      await states.close()
      states = await open()
      fixture.sfn = clientOf(states.endpoint)
      fixture.endpoint = states.endpoint
    },
    async close() {
      fixture.sfn.destroy()
      await states.close()
      await rm(directory, { recursive: true, force: true })
    },
  }
  return fixture
}

/** A Task state that invokes a function and waits for its answer. */
export const invoke = (FunctionName: string, more: object = {}) => ({
  Type: 'Task',
  Resource: 'arn:aws:states:::lambda:invoke',
  Parameters: { FunctionName, 'Payload.$': '$' },
  ResultSelector: { 'answer.$': '$.Payload' },
  ResultPath: '$.result',
  ...more,
})

/** A Task state that waits for its token. */
export const parked = (FunctionName: string, more: object = {}) => ({
  Type: 'Task',
  Resource: 'arn:aws:states:::lambda:invoke.waitForTaskToken',
  Parameters: {
    FunctionName,
    Payload: { 'machine.$': '$$.StateMachine.Name', 'task_token.$': '$$.Task.Token' },
  },
  ResultPath: '$.result',
  ...more,
})

/** Collects the tokens that a function is called with, and hands each out once to whoever waits on its machine. */
export function tokenCollector() {
  const machines = new Map<string, { arrived: string[]; wanted: ((token: string) => void)[] }>()
  const of = (machine: string) => {
    const known = machines.get(machine) ?? { arrived: [], wanted: [] }
    machines.set(machine, known)
    return known
  }
  return {
    collect: (payload: Record<string, unknown>) => {
      const token = String(payload.task_token)
      const { arrived, wanted } = of(String(payload.machine))
      const waiter = wanted.shift()
      if (waiter) waiter(token)
      else arrived.push(token)
    },
    next: (machine: string): Promise<string> => {
      const { arrived, wanted } = of(machine)
      const token = arrived.shift()
      return token === undefined ? new Promise((resolve) => wanted.push(resolve)) : Promise.resolve(token)
    },
  }
}
