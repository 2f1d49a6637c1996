import { describe, expect, it } from 'vitest'
import type { Captures } from '../../../lib/contract/capture.ts'
import type { CheckRun } from '../../../lib/contract/facts.ts'
import type { ContractCheck } from '../../../lib/contract/schema.ts'
import { gatesNothing, summarise } from '../../../lib/contract/summary.ts'
import { judge, notRun, type Phase } from '../../../lib/contract/verdict.ts'
import { aCheck, aRun } from './contracts.ts'

const verdict = (
  check: Partial<ContractCheck>,
  runs: CheckRun[],
  captures: Captures = {},
  phase: Phase = 'gate',
) => judge(aCheck(check), runs, { phase, captures, artifact: (run) => `run-${run}` })

const captured = (number: number | null): Captures => ({
  before: {
    ...{ digest: 'd', number },
    result: verdict({ name: 'before', baseline: true }, [aRun()], {}, 'baseline'),
  },
})

const compare = (expected: NonNullable<ContractCheck['differential']>['expect']) => ({
  differential: { baseline: 'before', expect: expected },
})

describe('one run', () => {
  it.each<[string, Partial<ContractCheck>, CheckRun, string, string]>([
    ['exit 0', {}, aRun(), 'passed', 'ok'],
    ['exit 1', {}, aRun({ exitCode: 1 }), 'failed', 'exit_code'],
    ['exit 127', {}, aRun({ exitCode: 127 }), 'could_not_run', 'command_not_found'],
    ['exit 126', {}, aRun({ exitCode: 126 }), 'could_not_run', 'not_executable'],
    ['exit 137', {}, aRun({ exitCode: 137 }), 'could_not_run', 'signal'],
    ['exit 139', {}, aRun({ exitCode: 139 }), 'failed', 'exit_code'],
    [
      'killed',
      {},
      aRun({ ended: 'signalled', exitCode: null, signal: 'SIGKILL' }),
      'could_not_run',
      'signal',
    ],
    ['too slow', {}, aRun({ ended: 'timed_out', exitCode: null }), 'could_not_run', 'timed_out'],
    ['exit 0 too late', {}, aRun({ ended: 'timed_out', exitCode: 0 }), 'could_not_run', 'timed_out'],
    ['session over', {}, aRun({ ended: 'timed_out' }, {}, true), 'could_not_run', 'deadline'],
    ['not started', {}, aRun({ ended: 'could_not_start' }), 'could_not_run', 'spawn_failed'],
    ['cancelled', {}, aRun({ ended: 'cancelled' }), 'could_not_run', 'cancelled'],
    ['any exit', { expect_exit_zero: false }, aRun({ exitCode: 3 }, { assertion: 'met' }), 'passed', 'ok'],
    [
      'any exit but not 127',
      { expect_exit_zero: false },
      aRun({ exitCode: 127 }, { assertion: 'met' }),
      ...(['could_not_run', 'command_not_found'] as const),
    ],
    ['output lacks it', {}, aRun({}, { assertion: 'missing' }), 'failed', 'output_missing'],
    ['not JSON', {}, aRun({}, { assertion: 'not_json' }), 'failed', 'output_not_json'],
    ['changed', compare('changed'), aRun({}, { digest: 'e' }), 'passed', 'ok'],
    ['not changed', compare('changed'), aRun(), 'failed', 'differential'],
    ['unchanged', compare('unchanged'), aRun(), 'passed', 'ok'],
    ['not unchanged', compare('unchanged'), aRun({}, { digest: 'e' }), 'failed', 'differential'],
    ['at the lower bound', compare({ delta_within: { min: 2 } }), aRun({}, { number: 12 }), 'passed', 'ok'],
    ['below it', compare({ delta_within: { min: 2 } }), aRun({}, { number: 11 }), 'failed', 'differential'],
    ['above', compare({ delta_within: { max: 0 } }), aRun({}, { number: 11 }), 'failed', 'differential'],
    ['no number', compare({ delta_within: { max: 0 } }), aRun(), 'failed', 'differential'],
  ])('%s', (_, check, run, expected, reason) => {
    const result = verdict(check, [run], captured(10))
    expect(result).toMatchObject({ verdict: expected, reason, passed: expected === 'passed', runs: 1 })
  })

  it('a comparison without its capture could not run', () => {
    expect(verdict(compare('changed'), [aRun()])).toMatchObject({ reason: 'capture_missing', passed: false })
  })

  it.each([
    [true, true, true],
    [false, true, false],
  ])('says whose clock killed it: clamped %s', (clamped, timed_out, deadline_clamped) => {
    const run = aRun({ ended: 'timed_out', signal: 'SIGTERM' }, {}, clamped)
    expect(verdict({}, [run])).toMatchObject({ timed_out, deadline_clamped, exit_code: null, signal: null })
    expect(verdict({}, [aRun({}, {}, clamped)])).toMatchObject({ timed_out: false, deadline_clamped: false })
  })
})

describe('several runs', () => {
  const pass = aRun()
  const fail = aRun({ exitCode: 1 })
  const stuck = aRun({ ended: 'timed_out' })
  it.each<[string, CheckRun[], string, string, string]>([
    ['all pass', [pass, pass], 'passed', 'ok', 'run-1'],
    ['all fail', [fail, fail], 'failed', 'exit_code', 'run-0'],
    ['they disagree', [pass, fail, pass], 'flaky', 'runs_disagree', 'run-1'],
    ['one could not run', [pass, fail, stuck], 'could_not_run', 'timed_out', 'run-2'],
  ])('%s', (_, runs, expected, reason, artifact) => {
    const result = verdict({}, runs)
    expect(result).toMatchObject({ verdict: expected, reason, artifact, runs: runs.length })
    expect(result).toMatchObject({ passed: expected === 'passed', duration_ms: runs.length * 5 })
  })
})

describe('what has no verdict', () => {
  const none = { verdict: 'captured', passed: false }
  it('a capture', () => {
    const check = { baseline: true }
    expect(verdict(check, [aRun({ exitCode: 1 })], {}, 'baseline')).toMatchObject({
      ...none,
      reason: 'capture',
    })
    const missing = verdict(check, [aRun({ exitCode: 127 })], {}, 'baseline')
    expect(missing).toMatchObject({ ...none, reason: 'command_not_found' })
  })

  it('a comparison on the baseline', () => {
    const result = verdict(compare('changed'), [aRun({ exitCode: 1 })], {}, 'baseline')
    expect(result).toMatchObject({ ...none, reason: 'capture', exit_code: 1 })
  })

  it('a comparison with a capture that did not run', () => {
    const broken = captured(1)
    const result = verdict({ name: 'before', baseline: true }, [aRun({ exitCode: 127 })], {}, 'baseline')
    const captures = { before: { digest: 'd', number: 1, ...broken.before, result } }
    expect(verdict(compare('unchanged'), [aRun()], captures)).toMatchObject({ reason: 'capture_missing' })
  })
})

describe('the sum', () => {
  const passed = verdict({ name: 'p' }, [aRun()])
  const failed = verdict({ name: 'f' }, [aRun({ exitCode: 1 })])
  const flaky = verdict({ name: 'y' }, [aRun(), aRun({ exitCode: 1 })])
  const slow = verdict({ name: 's' }, [aRun({ ended: 'timed_out' })])
  const starved = verdict({ name: 'd' }, [aRun({ ended: 'timed_out' }, {}, true)])
  const unstarted = notRun(aCheck({ name: 'u' }), 'deadline', 'gate')
  const capture = verdict({ name: 'c', baseline: true }, [aRun({ exitCode: 127 })], {}, 'baseline')
  const nothing = { green: false, measured: true, starved: false, failed: [], notRun: [] }

  it.each([
    ['green', [passed, passed, capture], { ...nothing, green: true }],
    ['red', [passed, failed], { ...nothing, failed: ['f'] }],
    ['flaky is red', [passed, flaky], { ...nothing, failed: ['y'] }],
    ['unmeasured', [passed, slow], { ...nothing, measured: false, notRun: ['s'] }],
    ['red and unmeasured', [slow, failed], { ...nothing, measured: false, failed: ['f'], notRun: ['s'] }],
    ['starved', [passed, starved], { ...nothing, measured: false, starved: true, notRun: ['d'] }],
    ['starved unstarted', [unstarted], { ...nothing, measured: false, starved: true, notRun: ['u'] }],
    ['nothing to gate', [capture], { ...nothing, measured: false }],
    ['nothing at all', [], { ...nothing, measured: false }],
  ])('%s', (_, results, expected) => {
    expect(summarise(results)).toEqual(expected)
  })

  it.each([
    ['all passed', [passed, passed], true],
    ['captures count neither way', [passed, capture], true],
    ['one is red', [passed, failed], false],
    ['one could not run', [passed, slow], false],
    ['only captures', [capture], false],
    ['nothing', [], false],
  ])('gates nothing: %s', (_, results, expected) => {
    expect(gatesNothing(results)).toBe(expected)
  })
})
