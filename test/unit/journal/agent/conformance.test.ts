import { describe, expect, it } from 'vitest'
import { agentFactSchema } from '../../../../lib/journal/agent/records.ts'
import { apply, replay } from '../../../../lib/journal/agent/reducer.ts'
import { AgentReplayError } from '../../../../lib/journal/agent/replay-error.ts'
import { restore, serialise, serialisedSchema } from '../../../../lib/journal/agent/serialise.ts'
import { type AgentState, materialise } from '../../../../lib/journal/agent/state.ts'
import { type Case, decodeCase, history, recordFiles, requireRecord } from './fixtures.ts'

const stateBefore = ({ given = '', before }: Case): AgentState | null => {
  const records = [...history(given), ...before.map(requireRecord)]
  return records.length === 0 ? null : replay(records)
}

const problemOf = (act: () => unknown) => {
  try {
    act()
  } catch (error) {
    if (error instanceof AgentReplayError) return error.problem
    throw error
  }
  return null
}

const text = (state: AgentState | null): string => JSON.stringify(state && serialise(state))

const check = (one: Case): void => {
  const decoded = decodeCase(one)
  const { expect: expected, state, given } = one
  if (expected.outcome !== 'accepted' && expected.outcome !== 'refused') {
    expect(decoded).toMatchObject(expected)
    return
  }
  if (decoded.outcome !== 'record') throw new Error(JSON.stringify(decoded))
  if (given === undefined) return
  const before = stateBefore(one)
  const asItWas = text(before)
  const again = before && restore(serialisedSchema.parse(JSON.parse(asItWas)))
  if (expected.outcome === 'refused') {
    expect(problemOf(() => apply(again, decoded.record))).toMatchObject(expected.problem)
    expect(problemOf(() => apply(before, decoded.record))).toMatchObject(expected.problem)
    expect(text(before)).toBe(asItWas)
    return
  }
  const after = materialise(apply(before, decoded.record))
  expect(materialise(apply(again, decoded.record))).toEqual(after)
  if (state) expect(after).toMatchObject(state)
  for (const [name, part] of Object.entries(state ?? {}))
    if (JSON.stringify(part) === '{}') expect(after).toHaveProperty(name, {})
}

describe.each(recordFiles)('$type', ({ cases }) => {
  it.each(cases)('$name', (one) => check(one))
})

it('every record type has its file of examples, with accepted and refused ones', () => {
  const types = agentFactSchema.options.map((option) => option.shape.type.value)
  expect(recordFiles.map(({ type, file }) => [file, type])).toEqual(
    ['session_created', ...types].sort().map((type) => [`${type}.json`, type]),
  )
  for (const { cases } of recordFiles) {
    const outcomes = new Set(cases.map((one) => one.expect.outcome === 'accepted'))
    expect([...outcomes].sort()).toEqual([false, true])
  }
})
