import { expect, it } from 'vitest'
import { needsYou } from '../../../lib/session/gates.ts'
import { aResult } from '../../support/sessions.ts'
import { aBaseline, aRun } from './results.ts'
import { setOutTo } from './road.ts'

const suspicion = "Error: Cannot find module 'zod'"
const red = (output_digest: string) =>
  aResult({ verdict: 'failed', reason: 'suspect_environment', exit_code: 1, suspicion, output_digest })

it('the gates say what is suspect, and that the output has been the same all the time', () => {
  const road = setOutTo('Baseline')
  road.work(aBaseline(red('a')))
  expect(needsYou(road.document)?.context).toContain(`the environment of unit is suspect: “${suspicion}”`)
  for (let n = 0; n < 3; n++) road.iterate(aRun(), red('a'))
  expect(road.document).toMatchObject({ step: 'ValidateGate', same_output: ['unit'] })
  expect(needsYou(road.document)?.context).toContain('the output of unit is the same as before any work')
  expect(needsYou(road.document)?.context).toContain(suspicion)
})

it('what once was another output is not the same any more', () => {
  const road = setOutTo('Baseline')
  road.work(aBaseline(red('a')))
  road.iterate(aRun(), red('a'))
  expect(road.document.same_output).toEqual(['unit'])
  road.iterate(aRun(), red('b'))
  road.iterate(aRun(), red('a'))
  expect(road.document).toMatchObject({ step: 'ValidateGate', same_output: [] })
  expect(needsYou(road.document)?.context).not.toContain('same as before')
})
