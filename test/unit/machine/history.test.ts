import { describe, expect, it } from 'vitest'
import { helperStates } from '../../../lib/machine/definition.ts'
import { type MachineEvent, stepHistory } from '../../../lib/machine/history.ts'

const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second))
const iso = (second: number) => at(second).toISOString()

const entered = (second: number, name: string, type = 'TaskStateEntered'): MachineEvent => ({
  type,
  timestamp: at(second),
  stateEnteredEventDetails: { name },
})
const exited = (
  second: number,
  name: string,
  output: unknown = {},
  type = 'TaskStateExited',
): MachineEvent => ({
  type,
  timestamp: at(second),
  stateExitedEventDetails: { name, output: JSON.stringify(output) },
})
const only = (second: number, type: string): MachineEvent => ({ type, timestamp: at(second) })

describe('a step that ended', () => {
  it('has its times, who ran it and what it noted', () => {
    const events = [
      only(0, 'ExecutionStarted'),
      entered(1, 'Baseline'),
      only(1, 'TaskScheduled'),
      only(1, 'TaskStarted'),
      only(2, 'TaskSubmitted'),
      only(4, 'TaskSucceeded'),
      exited(4, 'Baseline', { team: 't', last: { next: 'Confirm', note: '1 of 2 red' } }),
    ]
    expect(stepHistory(events)).toEqual([
      {
        name: 'Baseline',
        kind: 'worker',
        entered: iso(1),
        left: iso(4),
        duration_ms: 3000,
        outcome: 'succeeded',
        attempt: 1,
        note: '1 of 2 red',
        error: null,
      },
    ])
  })

  it.each([
    ['an empty note', { last: { next: 'Code', note: '' } }],
    ['no result', {}],
    ['a result of another shape', { last: 'odd' }],
  ])('has no note with %s', (_what, output) => {
    expect(stepHistory([entered(0, 'Plan'), exited(1, 'Plan', output)])).toMatchObject([
      { kind: 'handler', outcome: 'succeeded', note: null },
    ])
  })
})

it.each([
  ['Admit', 'admission'],
  ['Code', 'worker'],
  ['Decide', 'handler'],
  ['RateLimit', 'wait'],
  ['ValidateGate', 'gate'],
  ['Rest', 'handler'],
] as const)('%s is told as run by: %s', (name, kind) => {
  expect(stepHistory([entered(0, name)])).toMatchObject([{ name, kind, outcome: 'running' }])
})

it('counts how often a step was entered', () => {
  const events = ['Code', 'Validate', 'Code', 'Validate', 'Code'].flatMap((name, index) => [
    entered(index * 2, name),
    exited(index * 2 + 1, name),
  ])
  expect(stepHistory(events).map(({ name, attempt }) => [name, attempt])).toEqual([
    ['Code', 1],
    ['Validate', 1],
    ['Code', 2],
    ['Validate', 2],
    ['Code', 3],
  ])
})

it('leaves out states without work of their own', () => {
  const helpers = [
    'After Code',
    helperStates.resume,
    helperStates.backOff,
    helperStates.ended,
    helperStates.done,
  ]
  const events = helpers.flatMap((name, index) => [
    entered(index, name, 'ChoiceStateEntered'),
    exited(index, name, {}, 'ChoiceStateExited'),
  ])
  expect(stepHistory(events)).toEqual([])
})

it('a failed step says why, and its recovery is a run of its own', () => {
  const events: MachineEvent[] = [
    entered(0, 'Code'),
    { ...only(5, 'TaskFailed'), taskFailedEventDetails: { error: 'WorkerLost', cause: 'its lease expired' } },
    exited(5, 'Code', { fault: { Error: 'WorkerLost' } }),
    entered(5, helperStates.recover),
    exited(6, helperStates.recover, {
      last: { next: 'Code', note: 'WorkerLost: its lease expired', wait: 0 },
    }),
    entered(6, 'Code'),
  ]
  expect(stepHistory(events)).toMatchObject([
    {
      name: 'Code',
      outcome: 'failed',
      error: 'WorkerLost: its lease expired',
      left: iso(5),
      duration_ms: 5000,
    },
    { name: 'Recover', kind: 'recovery', outcome: 'succeeded', note: 'WorkerLost: its lease expired' },
    { name: 'Code', outcome: 'running', attempt: 2, left: null, duration_ms: null },
  ])
})

it('a step that ran out of time is told from one that failed', () => {
  const events: MachineEvent[] = [
    entered(0, 'Confirm'),
    { ...only(9, 'TaskTimedOut'), taskTimedOutEventDetails: { error: 'States.Timeout' } },
  ]
  expect(stepHistory(events)).toMatchObject([
    { kind: 'gate', outcome: 'timed_out', error: 'States.Timeout', duration_ms: 9000 },
  ])
})

it.each([
  ['ExecutionAborted', 'aborted'],
  ['ExecutionFailed', 'failed'],
  ['ExecutionTimedOut', 'timed_out'],
])('a step that was open at %s was %s', (type, outcome) => {
  expect(stepHistory([entered(0, 'Admit'), only(3, type)])).toMatchObject([
    { kind: 'admission', outcome, left: iso(3), duration_ms: 3000 },
  ])
})

it('an end of the execution changes no step that had ended', () => {
  const events = [entered(0, 'Settle'), exited(1, 'Settle'), only(2, 'ExecutionFailed')]
  expect(stepHistory(events)).toMatchObject([{ outcome: 'succeeded', left: iso(1) }])
})

it('an execution without events has no steps', () => {
  expect(stepHistory([])).toEqual([])
})
