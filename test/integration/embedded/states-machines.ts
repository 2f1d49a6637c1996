import { invoke, parked } from './states-fixture.ts'

const alone = (state: object) => ({ StartAt: 'Only', States: { Only: { ...state, End: true } } })

const catching = (task: object, errors = ['States.ALL']) => ({
  StartAt: 'Try',
  States: {
    Try: { ...task, Catch: [{ ErrorEquals: errors, ResultPath: '$.caught', Next: 'Caught' }], End: true },
    Caught: { Type: 'Pass', End: true },
  },
})

/** One machine for each thing that the endpoint promises. */
export const machines = {
  echo: alone(invoke('echo')),
  nothing: alone(invoke('nothing')),
  context: alone({
    Type: 'Pass',
    Parameters: {
      'id.$': '$$.Execution.Id',
      'name.$': '$$.Execution.Name',
      'started.$': '$$.Execution.StartTime',
      'input.$': '$$.Execution.Input',
      'state.$': '$$.State.Name',
      'entered.$': '$$.State.EnteredTime',
      'machine.$': '$$.StateMachine.Name',
      'machineId.$': '$$.StateMachine.Id',
    },
  }),
  steps: {
    StartAt: 'Prepare',
    States: {
      Prepare: { Type: 'Pass', Result: { go: true }, ResultPath: '$.prepared', Next: 'Pause' },
      Pause: { Type: 'Wait', Seconds: 0, Next: 'Which' },
      Which: {
        Type: 'Choice',
        Choices: [{ Variable: '$.fail', BooleanEquals: true, Next: 'Failed' }],
        Default: 'Done',
      },
      Done: { Type: 'Succeed' },
      Failed: { Type: 'Fail', Error: 'Refused', Cause: 'because it was asked to' },
    },
  },
  'waiting-by-path': alone({ Type: 'Wait', SecondsPath: '$.seconds' }),
  waiting: alone({ Type: 'Wait', Seconds: 500 }),
  parked: alone(parked('park', { TimeoutSeconds: 600, HeartbeatSeconds: 300 })),
  unguarded: alone(parked('park')),
  'caught-failure': catching(parked('park')),
  'behind-choices': {
    StartAt: 'First',
    States: {
      First: invoke('echo', { Next: 'Which' }),
      Which: {
        Type: 'Choice',
        Choices: [{ Variable: '$.go', IsPresent: true, Next: 'Then' }],
        Default: 'Then',
      },
      Then: { Type: 'Pass', Parameters: { limit: 7 }, Next: 'Second' },
      Second: parked('park', { TimeoutSecondsPath: '$.limit', End: true }),
    },
  },
  throws: catching(parked('throws')),
  'throws-at-once': catching(invoke('throws')),
  flaky: alone(
    invoke('flaky', {
      Parameters: { FunctionName: 'flaky', Payload: { 'attempt.$': '$$.State.RetryCount' } },
      Retry: [
        {
          ErrorEquals: ['LeaseLost'],
          IntervalSeconds: 1,
          MaxAttempts: 2,
          BackoffRate: 1,
          MaxDelaySeconds: 1,
        },
      ],
    }),
  ),
  'parked-again': alone(
    parked('park', { Retry: [{ ErrorEquals: ['States.ALL'], IntervalSeconds: 1, MaxAttempts: 1 }] }),
  ),
  large: catching(invoke('large')),
  'large-named': catching(invoke('large'), ['States.DataLimitExceeded']),
  growing: alone({ Type: 'Pass', Parameters: { 'a.$': '$', 'b.$': '$' } }),
  timeout: catching(invoke('never', { TimeoutSeconds: 1 }), ['States.Timeout']),
  'timeout-is-no-task-failure': catching(invoke('never', { TimeoutSeconds: 1 }), ['States.TaskFailed']),
  heartbeat: catching(parked('park', { TimeoutSeconds: 30, HeartbeatSeconds: 1 }), [
    'States.HeartbeatTimeout',
  ]),
  'heartbeat-by-path': catching(
    parked('park', { TimeoutSecondsPath: '$.limits.all', HeartbeatSecondsPath: '$.limits.beat' }),
    ['States.Timeout'],
  ),
  'whole-timeout': { ...alone(parked('park')), TimeoutSeconds: 1 },
  loop: {
    StartAt: 'A',
    States: {
      A: { Type: 'Pass', Next: 'B' },
      B: { Type: 'Choice', Choices: [{ Variable: '$.never', IsPresent: true, Next: 'End' }], Default: 'A' },
      End: { Type: 'Succeed' },
    },
  },
}
