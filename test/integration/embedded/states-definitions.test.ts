import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startStates } from '../../../infra/local/states/server.ts'
import { testKeys } from '../../support/keys.ts'
import { invoke, parked } from './states-fixture.ts'

let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gatehouse-definitions-'))
})
afterAll(() => rm(directory, { recursive: true, force: true }))

const opening = async (definition: object) => {
  const states = await startStates({
    keys: testKeys,
    directory,
    region: 'us-east-1',
    definitions: [{ name: 'machine', definition }],
    invoke: async () => null,
  })
  await states.close()
}
const only = (state: object, more: object = {}) => ({ StartAt: 'Odd', States: { Odd: state }, ...more })
const choice = (rule: object) => ({
  StartAt: 'Odd',
  States: { Odd: { Type: 'Choice', Choices: [{ Next: 'Done', ...rule }] }, Done: { Type: 'Succeed' } },
})

describe('a definition that would not run as on AWS is refused, naming state and reason', () => {
  test.each([
    [
      'JSONata for the machine',
      only({ Type: 'Succeed' }, { QueryLanguage: 'JSONata' }),
      /QueryLanguage: only the JSONPath/,
    ],
    ['JSONata for a state', only({ Type: 'Succeed', QueryLanguage: 'JSONata' }), /"Odd": QueryLanguage/],
    ['Assign', only({ Type: 'Pass', Assign: { a: 1 }, End: true }), /"Odd": not run here \(Assign\)/],
    ['Arguments', only({ ...invoke('f'), Arguments: {}, End: true }), /"Odd": not run here \(Arguments\)/],
    [
      '.sync',
      only({ ...invoke('f'), Resource: 'arn:aws:states:::ecs:runTask.sync', End: true }),
      /"Odd": Resource/,
    ],
    [
      'an unknown resource',
      only({ ...invoke('f'), Resource: 'arn:aws:lambda:us-east-1:1:function:f', End: true }),
      /"Odd": Resource/,
    ],
    [
      'a distributed Map',
      only({
        Type: 'Map',
        ItemProcessor: { ProcessorConfig: { Mode: 'DISTRIBUTED' }, StartAt: 'A', States: {} },
        End: true,
      }),
      /"Odd": .*type of state is not run/,
    ],
    ['Parallel', only({ Type: 'Parallel', Branches: [], End: true }), /"Odd": .*type of state is not run/],
    [
      'a token task that passes no token on',
      only({ ...parked('f'), Parameters: { FunctionName: 'f', Payload: {} }, End: true }),
      /"Odd": .*Task\.Token/,
    ],
    [
      'a heartbeat as long as the time-out',
      only({ ...parked('f', { TimeoutSeconds: 5, HeartbeatSeconds: 5 }), End: true }),
      /"Odd": HeartbeatSeconds must be smaller/,
    ],
    [
      'a Result that the interpreter drops',
      only({ Type: 'Pass', Result: false, End: true }),
      /"Odd": Result/,
    ],
    [
      'an unknown intrinsic function',
      only({ Type: 'Pass', Parameters: { 'a.$': "States.Format('{}', States.Oddity($))" }, End: true }),
      /"Odd": .*States\.Oddity/,
    ],
    ['an unknown comparison', choice({ Variable: '$.a', StringResembles: 'b' }), /"Odd": .*StringResembles/],
    [
      'two comparisons in one rule',
      choice({ Variable: '$.a', IsNull: true, IsString: true }),
      /exactly one comparison/,
    ],
    [
      'a nested rule with a target',
      choice({ Not: { Variable: '$.a', IsNull: true, Next: 'Done' } }),
      /nested one none/,
    ],
    ['a missing target', only({ Type: 'Pass', Next: 'Nowhere' }), /no state "Nowhere"/],
    ['a state with no way on', only({ Type: 'Pass' }), /"Odd": it needs either Next or End/],
    [
      'a state that nothing leads to',
      { StartAt: 'A', States: { A: { Type: 'Succeed' }, Odd: { Type: 'Succeed' } } },
      /"Odd": nothing leads to it/,
    ],
    ['a start that is not there', { StartAt: 'A', States: {} }, /no state "A"/],
  ])('%s', async (_what, definition, reason) => {
    await expect(opening(definition)).rejects.toThrow(reason)
    await expect(opening(definition)).rejects.toThrow('state machine "machine" can\'t be run here')
  })

  test('what the product uses is accepted', async () => {
    const handlers = {
      Retry: [
        { ErrorEquals: ['States.TaskFailed'], IntervalSeconds: 2, MaxAttempts: 3, JitterStrategy: 'FULL' },
      ],
      Catch: [{ ErrorEquals: ['States.ALL'], ResultPath: '$', Next: 'Done' }],
    }
    await opening({
      Comment: 'a session',
      StartAt: 'Ask',
      TimeoutSeconds: 31_536_000,
      States: {
        Ask: {
          ...parked('f', { TimeoutSeconds: 2_592_000, HeartbeatSeconds: 60, ...handlers }),
          Next: 'Which',
        },
        Which: {
          Type: 'Choice',
          Choices: [
            {
              And: [
                { Variable: '$.result.next', IsPresent: true },
                { Variable: '$.result.next', StringEquals: 'again' },
              ],
              Next: 'Ask',
            },
          ],
          Default: 'Pause',
        },
        Pause: { Type: 'Wait', TimestampPath: '$.result.until', Next: 'Done' },
        Done: { Type: 'Fail', ErrorPath: '$.result.error', CausePath: '$.result.cause' },
      },
    })
  })
})
