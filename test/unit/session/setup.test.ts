import { describe, expect, it } from 'vitest'
import { limits } from '../../../lib/limits.ts'
import { revise } from '../../../lib/session/contract-decisions.ts'
import { aContract, ada, aResult } from '../../support/sessions.ts'
import { aBaseline, aRun, failed, passed, validation } from './results.ts'
import { setOutTo } from './road.ts'

const notRun = aResult({ verdict: 'could_not_run', reason: 'setup_failed' })
const faults = limits.infraFailures

describe('a setup that fails in a tree of the work', () => {
  it.each(['Validate', 'Verify'] as const)('is tried again at %s, and then a person is asked', (step) => {
    const road = setOutTo(step)
    const { checkpoint, iterations } = road.document
    for (let n = 1; n < faults; n++)
      expect(road.lose('SetupFailed').document).toMatchObject({ step, infra_failures: n, gate: null })
    expect(road.lose('SetupFailed').document).toMatchObject({
      ...{ state: 'running', step: 'ValidateGate', checkpoint, iterations },
      gate: { kind: 'validate', cause: 'setup', label: expect.stringContaining('the setup fails') },
    })
    expect(() => road.gate('advance')).toThrow('advance is not possible')
    road.gate('loop_back')
    expect(road.document).toMatchObject({ step: 'Validate', infra_failures: 0, iterations })
    road.work(validation(passed))
    expect(road.enter().document).toMatchObject({ step: 'Verify' })
  })

  it('costs nothing of the work where a person ends the session for it, whatever was asked for at its start', () => {
    const road = setOutTo('Validate', { keep_workspace_on_cancel: false })
    for (let n = 1; n <= faults; n++) road.lose('SetupFailed')
    expect(road.gate('abort').document).toMatchObject({ state: 'abandoned', retained_work: true })
  })

  it('is told to the machine as a fault of its own name', () => {
    const road = setOutTo('Validate')
    road.work({ outcome: 'setup_failed', detail: 'the registry is away' })
    const answer = road.item.runtime.answers.at(-1)
    expect(answer).toMatchObject({ ok: false, error: 'SetupFailed', cause: 'the registry is away' })
    expect(road.document).toMatchObject({ state: 'running', step: 'Validate' })
  })
})

describe('a baseline that shows less than it should', () => {
  it.each(['supervise', 'auto'] as const)(
    'opens the contract gate in mode %s, where its setup failed',
    (mode) => {
      const road = setOutTo('Baseline', { mode })
      road.work({ ...aBaseline(notRun), setup_problem: 'setup command “npm ci” exited with 1: E404' })
      expect(road.document).toMatchObject({
        step: 'Confirm',
        gate: { kind: 'contract', context: expect.stringContaining('E404') },
      })
      expect(road.document.gate?.label).toContain('the setup failed on the untouched tree')
      // What was wrong around it may be right by now.
      road.write(revise(road.item, road.document.contract ?? aContract(), ada))
      expect(road.document.step).toBe('Baseline')
    },
  )

  it.each([
    ['could_not_run', 'could not run: unit'],
    ['flaky', 'flaky: unit'],
  ] as const)('is never confirmed by mode auto with a check that is %s', (verdict, told) => {
    const road = setOutTo('Baseline', { mode: 'auto' })
    road.work(aBaseline(aResult({ verdict })))
    expect(road.enter().document).toMatchObject({ step: 'Confirm', state: 'contract_proposed' })
    expect(road.document.gate).toMatchObject({
      label: expect.stringContaining(told),
      context: expect.stringContaining(told),
    })
  })
})

it('says at the gate what of a revised contract is rarely meant', () => {
  const road = setOutTo('Confirm')
  road.enter()
  const contract = aContract()
  const checks = contract.checks.map((check) => ({ ...check, command: 'make | /usr/bin/grep -q ok' }))
  road.write(revise(road.item, { ...contract, checks }, ada))
  expect(road.told('contract_proposed').at(-1)?.warnings).toHaveLength(1)
  road.work(aBaseline(failed))
  expect(road.document.gate?.context).toContain('pipes into a quiet grep')
})

describe('a check that could not run on the untouched tree', () => {
  it('costs one run of the engine, where it can not run after it either', () => {
    const road = setOutTo('Baseline')
    road.work(aBaseline(aResult({ verdict: 'could_not_run' })))
    road.onward()
    road.onward()
    road.work(aRun())
    road.work(validation(aResult({ verdict: 'could_not_run' })))
    expect(road.enter().document).toMatchObject({
      ...{ step: 'ValidateGate', iterations: 1, consecutive_failures: 0 },
      gate: { context: expect.stringContaining('could not on the untouched tree either: unit') },
    })
  })

  it('says nothing for one that an engine made so', () => {
    const road = setOutTo('Validate')
    road.work(validation(aResult({ verdict: 'could_not_run' })))
    expect(road.enter().document.step).toBe('Code')
    road.work(aRun())
    road.work(validation(failed))
    expect(road.enter().document).toMatchObject({ step: 'Code', consecutive_failures: 1 })
  })
})
