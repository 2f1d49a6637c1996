import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { startStates } from '../../infra/local/states/server.ts'
import type { TaskAnswer } from '../../lib/session/item.ts'
import { connect } from '../../lib/store/clients.ts'
import { createMachine } from '../../lib/store/machine.ts'
import type { Platform } from '../../lib/store/platform.ts'
import { temporaryFolder } from '../repositories.ts'
import { testKeys } from '../support/keys.ts'
import { createMachineDriver, FunctionError } from '../support/machine-driver.ts'

type Machine = Platform['machine']
/** What the function is asked; `n` counts the calls of one execution. */
type Asked = { token: string; n: number; machine: Machine }
type Scenario = {
  states: Record<string, object>
  act: (asked: Asked) => unknown
  /** The answer that a parked task gets from outside. */
  outside?: (token: string) => TaskAnswer
  /** It is stopped once it is parked. */
  stopped?: true
}

const call = 'arn:aws:states:::lambda:invoke'
const task = (more: object, payload: object = {}, resource = call) => ({
  ...{ Type: 'Task', Resource: resource },
  Parameters: { FunctionName: 'act', Payload: { 'id.$': '$.session_id', ...payload } },
  ...more,
})
const parked = (more: object) => task(more, { 'token.$': '$$.Task.Token' }, `${call}.waitForTaskToken`)
const chosen = { ResultSelector: { 'next.$': '$.Payload.next' }, ResultPath: '$.last' }
const caught = { Catch: [{ ErrorEquals: ['States.ALL'], ResultPath: '$.fault', Next: 'Mend' }] }
const retried = {
  Retry: [{ ErrorEquals: ['Lambda.ServiceException'], IntervalSeconds: 1, MaxAttempts: 1, BackoffRate: 1 }],
}
const ends = { Done: { Type: 'Succeed' }, Mend: { Type: 'Succeed' } }
const good = (token: string): TaskAnswer => ({
  ...{ ok: true, sequence: null, token },
  output: { next: 'Done', note: 'by token', wait: 1, at: 0, away: 0 },
})
const bad = (token: string): TaskAnswer => ({
  ...{ ok: false, sequence: null, token, error: 'WorkerLost', cause: 'gone' },
})

const fails = (name: string) => {
  throw new FunctionError(name, 'told')
}

const scenarios: Record<string, Scenario> = {
  'a task and a choice': {
    states: {
      Begin: task({ ...chosen, Next: 'Which' }),
      Which: {
        Type: 'Choice',
        Choices: [{ Variable: '$.last.next', StringEquals: 'Other', Next: 'Other' }],
        Default: 'Done',
      },
      Other: { Type: 'Fail', ErrorPath: '$.last.next', CausePath: '$.session_id' },
      ...ends,
    },
    act: () => ({ next: 'Other' }),
  },
  'the choice that is left': {
    states: {
      Begin: task({ ...chosen, Next: 'Which' }),
      Which: {
        Type: 'Choice',
        Choices: [{ Variable: '$.last.next', StringEquals: 'Mend', Next: 'Mend' }],
        Default: 'Done',
      },
      ...ends,
    },
    act: () => ({ next: 'elsewhere' }),
  },
  'a retry that helps': {
    states: { Begin: task({ ...chosen, ...retried, ...caught, Next: 'Done' }), ...ends },
    act: ({ n }) => (n === 1 ? fails('Lambda.ServiceException') : { next: 'x' }),
  },
  'retries that are used up, and a wait': {
    states: {
      Begin: task({ ...chosen, ...retried, Catch: [{ ...caught.Catch[0], Next: 'Wait' }], Next: 'Done' }),
      Wait: { Type: 'Wait', SecondsPath: '$.attempt', Next: 'Mend' },
      ...ends,
    },
    act: () => fails('Lambda.ServiceException'),
  },
  'an error that nobody catches': {
    states: { Begin: task({ ...retried, Next: 'Done' }), ...ends },
    act: () => fails('Broken'),
  },
  'a token that is answered': {
    states: { Begin: parked({ ResultPath: '$.last', ...caught, Next: 'Done' }), ...ends },
    ...{ act: () => null, outside: good },
  },
  'a token that is answered while its function runs': {
    states: { Begin: parked({ ResultPath: '$.last', ...caught, Next: 'Done' }), ...ends },
    act: async ({ token, machine }) => machine.answer(good(token)),
  },
  'a token whose work failed': {
    states: { Begin: parked({ ResultPath: '$.last', ...caught, Next: 'Done' }), ...ends },
    ...{ act: () => null, outside: bad },
  },
  'a heartbeat that stays away': {
    states: {
      Begin: parked({ ResultPath: '$.last', HeartbeatSeconds: 1, ...caught, Next: 'Done' }),
      ...ends,
    },
    act: () => null,
  },
  'a time limit that its input sets': {
    states: {
      Begin: parked({ ResultPath: '$.last', TimeoutSecondsPath: '$.attempt', ...caught, Next: 'Done' }),
      ...ends,
    },
    act: () => null,
  },
  'a result that takes the place of all': {
    states: {
      Begin: task({
        ResultSelector: { 'id.$': '$$.Execution.Input.session_id', last: { 'next.$': '$.Payload.next' } },
        Next: 'Done',
      }),
      ...ends,
    },
    act: () => ({ next: 'x' }),
  },
  'a stop': {
    states: { Begin: parked({ ResultPath: '$.last', Next: 'Done' }), ...ends },
    ...{ act: () => null, stopped: true },
  },
}

const session = { team: 'team', id: 'ses_1', attempt: 1 }

/** Runs one execution to its end; `wait` lets time go by. */
const outcome = async (machine: Machine, tokens: string[], scenario: Scenario, wait: () => Promise<void>) => {
  const arn = await machine.start(session)
  while ((await machine.status(arn)) === 'RUNNING') {
    const { outside, stopped } = scenario
    const token = tokens[0]
    if (token !== undefined && outside) await machine.answer(outside(token))
    if (token !== undefined && stopped) await machine.stop(arn, 'Stopped', 'by hand')
    await wait()
  }
  const events = await machine.history(arn)
  const failure = events.find((event) => event.executionFailedEventDetails)?.executionFailedEventDetails
  return {
    status: await machine.status(arn),
    entered: events.flatMap((event) => event.stateEnteredEventDetails?.name ?? []),
    data: JSON.parse(
      events.findLast((event) => event.stateExitedEventDetails)?.stateExitedEventDetails?.output ?? 'null',
    ),
    failure: failure && { error: failure.error, cause: failure.cause },
    late: tokens[0] === undefined ? null : await machine.answer(good(tokens[0])),
  }
}

/** The function of a scenario for one machine, and the tokens that it was given. */
const playing = (scenario: Scenario, machine: () => Machine) => {
  const tokens: string[] = []
  let n = 0
  const invoke = async (payload: unknown): Promise<unknown> => {
    const token = String(Object(payload).token ?? '')
    n += 1
    if (token !== '') tokens.push(token)
    return scenario.act({ token, n, machine: machine() })
  }
  return { tokens, invoke }
}

/** Only the states that are led to: Step Functions refuses others. */
const definitionOf = ({ states }: Scenario) => {
  const text = JSON.stringify(Object.values(states))
  const led = Object.entries(states).filter(([name]) => name === 'Begin' || text.includes(`"${name}"`))
  return { StartAt: 'Begin', States: Object.fromEntries(led) }
}

const onDriver = async (scenario: Scenario) => {
  let now = 0
  const { tokens, invoke } = playing(scenario, () => driver.machine)
  const driver = createMachineDriver({ definition: definitionOf(scenario), invoke, now: () => now })
  return outcome(driver.machine, tokens, scenario, async () => {
    const [ready] = driver.ready()
    if (ready !== undefined) await driver.step(ready)
    else if (Number.isFinite(driver.nextAt())) now = driver.nextAt()
  })
}

const onStepFunctions = async (scenario: Scenario) => {
  const { tokens, invoke } = playing(scenario, () => machine)
  const states = await startStates({
    keys: testKeys,
    ...{ directory: temporaryFolder(), region: 'us-east-1' },
    definitions: [{ name: 'machine', definition: definitionOf(scenario) }],
    invoke: async (_, payload) => invoke(payload),
  })
  const arn = states.stateMachineArns.machine ?? ''
  const clients = connect(
    { region: 'us-east-1', table: '', bucket: '', state_machine_arn: arn, states: states.endpoint },
    testKeys,
  )
  onTestFinished(async () => {
    for (const client of [clients.dynamo, clients.s3, clients.sfn]) client.destroy()
    await states.close()
  })
  const machine = createMachine(clients.sfn, arn)
  return outcome(machine, tokens, scenario, async () => void (await sleep(10)))
}

describe('the machine under a test’s control goes where Step Functions goes', () => {
  it.each(Object.entries(scenarios))('%s', async (_, scenario) => {
    const [driven, embedded] = [await onDriver(scenario), await onStepFunctions(scenario)]
    expect(driven).toEqual(embedded)
    expect(driven.entered[0]).toBe('Begin')
  })

  it('and refuses a definition that it does not understand', () => {
    const definition = { StartAt: 'Both', States: { Both: { Type: 'Parallel', Branches: [], End: true } } }
    const driver = () => createMachineDriver({ definition, invoke: async () => null, now: () => 0 })
    expect(driver).toThrow('Type')
  })
})
