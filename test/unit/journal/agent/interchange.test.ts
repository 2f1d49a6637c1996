import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { decode } from '../../../../lib/journal/agent/decode.ts'
import { readRecord } from '../../../../lib/journal/agent/envelope.ts'
import {
  encode,
  exportRecords,
  InterchangeError,
  importRecords,
} from '../../../../lib/journal/agent/interchange.ts'
import { lossOf } from '../../../../lib/journal/agent/json-scan.ts'
import { replay } from '../../../../lib/journal/agent/reducer.ts'
import { materialise } from '../../../../lib/journal/agent/state.ts'
import { decodeCase, history, historyNames, recordFiles } from './fixtures.ts'

const examples = recordFiles
  .filter(({ type }) => type !== 'approval_expired' && type !== 'tool_call_resolved')
  .flatMap(({ type, cases }) => cases.map((one) => ({ ...one, name: `${type}: ${one.name}` })))
  .map((one) => ({ one, decoded: decodeCase(one) }))

it('every accepted example is the same record when it is written and decoded again', () => {
  const exact = examples.filter(({ one }) => !one.name.includes('the largest sequence'))
  let count = 0
  for (const { decoded } of exact) {
    if (decoded.outcome !== 'record') continue
    expect(decode(encode(decoded.record))).toEqual(decoded)
    count++
  }
  expect(count).toBeGreaterThan(200)
})

it('a place that no number holds is never written', () => {
  const found = examples.find(({ one }) => one.name.includes('the largest sequence'))?.decoded
  if (found?.outcome !== 'record') throw new Error('it is read')
  expect(() => encode(found.record)).toThrow(RangeError)
})

it('what is written is the flat envelope of 1.0, in its order, and nothing else', () => {
  const [, second] = history('asked')
  if (!second) throw new Error('there is one')
  const more = {
    causation_id: 'cmd_01jpgb0qg0e008000000000000',
    correlation_id: 'run_01jpgb0qg0e008000000000000',
  }
  const wire: unknown = JSON.parse(encode({ ...second, ...more, metadata: { 'com.example': 1 } }))
  expect(Object.keys(Object(wire))).toEqual([
    ...['protocolVersion', 'type', 'recordId', 'sessionId', 'sequence', 'timestamp'],
    ...['causationId', 'correlationId', 'branchId', 'metadata', 'payload'],
  ])
  expect(wire).toMatchObject({
    ...{ protocolVersion: '1.0', type: 'message_committed', sequence: '1' },
    branchId: '0195a0b1-5e00-7000-8000-000000000001',
  })
})

it('nothing invalid is ever written', () => {
  const [, second] = history('asked')
  if (second?.type !== 'message_committed') throw new Error('there is one')
  const message = { ...second.data.message, content: [] }
  expect(() => encode({ ...second, data: { message } })).toThrow(TypeError)
})

it('a member named __proto__ is one like any other', () => {
  const line = history('requested').map(encode).at(-1) ?? ''
  const wire = line.replace('{"path":"a.txt"}', '{"__proto__":{"a":1},"constructor":2}')
  const decoded = decode(wire.replace('"payload":{', '"payload":{"__proto__":{"toolName":"other"},'))
  if (decoded.outcome !== 'record') throw new Error(JSON.stringify(decoded))
  expect(encode(decoded.record)).toBe(wire)
})

it('empty metadata is not written', () => {
  const [first] = history('created')
  if (first?.type !== 'session_created') throw new Error('it is the first record')
  const line = encode({ ...first, metadata: {}, data: { ...first.data, metadata: {} } })
  expect(line).not.toContain('metadata')
})

it('a time with an offset is written in UTC', () => {
  const found = examples.find(({ one }) => one.name.includes('a timestamp with an offset'))?.decoded
  if (found?.outcome !== 'record') throw new Error('it is read')
  expect(JSON.parse(encode(found.record)).timestamp).toBe('2026-07-23T09:30:12.123Z')
})

describe.each(historyNames)('the session %s', (name) => {
  it('comes back from the wire as it was', () => {
    const records = history(name)
    const exported = exportRecords(records)
    if (!exported.ok) throw new Error('it can be exported')
    const imported = importRecords(exported.lines)
    expect(imported.records).toEqual(records)
    expect(materialise(imported.state)).toEqual(materialise(replay(records)))
  })
})

it('on the wire the sequence is the place among the exported records', () => {
  const records = history('asked').map((record) => ({ ...record, sequence: record.sequence * 10 }))
  const exported = exportRecords(records)
  if (!exported.ok) throw new Error('it can be exported')
  expect(exported.lines.map((line) => JSON.parse(line).sequence)).toEqual(['0', '1'])
})

it('what the wire has no place for is refused by its name', () => {
  const pending = history('approval_pending')
  const expired = recordFiles.find(({ type }) => type === 'approval_expired')?.cases[0]
  const decoded = expired && decodeCase(expired)
  if (decoded?.outcome !== 'record') throw new Error('it is a record')
  const exported = exportRecords([...pending, decoded.record])
  expect(exported).toEqual({
    ok: false,
    refusal: { sequence: 6, type: 'approval_expired', exportable: pending.length },
  })
  expect(exportRecords(pending).ok).toBe(true)
})

it('an import stops at the first line that it can not take, by its outcome', () => {
  const exported = exportRecords(history('settled'))
  if (!exported.ok) throw new Error('it can be exported')
  const lines = [...exported.lines]
  const at = (line: number, changed: (wire: Record<string, unknown>) => object) => {
    const text = lines.map((one, place) => (place === line ? JSON.stringify(changed(JSON.parse(one))) : one))
    try {
      importRecords(text)
    } catch (error) {
      if (error instanceof InterchangeError) return error
      throw error
    }
    return null
  }
  expect(at(3, (wire) => ({ ...wire, type: 'tool_call_renamed' }))).toMatchObject({
    ...{ line: 3, decoded: { outcome: 'unsupported_type', type: 'tool_call_renamed' } },
  })
  expect(at(3, (wire) => ({ ...wire, protocolVersion: '3.1' }))).toMatchObject({
    ...{ line: 3, decoded: { outcome: 'unsupported_version', version: '3.1' } },
  })
  expect(at(2, (wire) => ({ ...wire, payload: {} }))).toMatchObject({
    line: 2,
    decoded: { outcome: 'invalid' },
  })
  expect(at(4, (wire) => ({ ...wire, sequence: '9' }))).toMatchObject({
    ...{ line: 4, decoded: null, cause: { problem: { kind: 'SequenceMismatch', expected: 4, actual: 9 } } },
  })
  expect(() => importRecords([])).toThrow('EmptyLog')
})

it('a cause that is a record of the session is known for one', () => {
  const exported = exportRecords(history('asked'))
  if (!exported.ok) throw new Error('it can be exported')
  const [first = '', second = ''] = exported.lines
  const recordId: string = JSON.parse(first).recordId
  const caused = (causationId: string) =>
    importRecords([first, JSON.stringify({ ...JSON.parse(second), causationId })]).records[1]?.causation_id
  expect(caused(recordId)).toMatch(/^evt_/)
  expect(caused('0195a0b1-5e00-7000-8000-00000000ffff')).toMatch(/^cmd_/)
})

it.each([
  ['sequence', 'a number', { sequence: 3 }],
  ['sequence', 'a leading zero', { sequence: '03' }],
  ['recordId', 'upper case', { recordId: '0195A0B1-5E00-7000-8000-000000002003' }],
  ['timestamp', 'no time', { timestamp: 'yesterday' }],
  ['branchId', 'no id', { branchId: 'main' }],
  ['payload.profileId', 'nothing', { payload: {} }],
])('%s that is %s is refused by its name on the wire', (name, _, change) => {
  const [line = ''] = history('created').map(encode)
  const decoded = decode(JSON.stringify({ ...JSON.parse(line), ...change }))
  if (decoded.outcome !== 'invalid') throw new Error(decoded.outcome)
  expect(decoded.problem.split(':')[0]).toBe(name)
  expect(decoded.problem).not.toMatch(/evt_|brn_/)
})

it('decoding never throws, whatever it is given', () => {
  const [line = ''] = history('created').map(encode)
  fc.assert(
    fc.property(
      fc.nat({ max: line.length }),
      fc.string({ maxLength: 4 }),
      fc.nat({ max: 4 }),
      (at, more, cut) => {
        expect(decode(line.slice(0, at) + more + line.slice(at + cut))).toHaveProperty('outcome')
      },
    ),
  )
  fc.assert(fc.property(fc.json(), (text) => void expect(decode(text).outcome).toBe('invalid')))
  const deep = `{"protocolVersion":"1.0","type":"run_cancelled","payload":${'['.repeat(100_000)}${']'.repeat(100_000)}}`
  expect(decode(deep)).toMatchObject({ outcome: 'invalid', problem: 'nested deeper than 128' })
})

it('JSON without duplicates or large integers loses nothing', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
      const text = JSON.stringify(value)
      const hasLarge = /(?<![\d.eE+-])-?\d{16,}(?![\d.eE])/.test(text)
      if (!hasLarge) expect(lossOf(text, 128)).toBeNull()
      const doubled = `{"a":${text},"b":[{"c\\n":1,"d":${text},"c\\u000a":2}]}`
      if (!hasLarge) expect(lossOf(doubled, 128)).toContain('stands twice')
    }),
  )
})

describe('a line of a tool call', () => {
  const call = examples.find(
    ({ one, decoded }) => one.record?.type === 'tool_call_requested' && decoded.outcome === 'record',
  )
  const withArguments = (json: string): string => {
    const { payload, ...rest } = z.looseObject({ payload: z.looseObject({}) }).parse(call?.one.record)
    return JSON.stringify({ ...rest, payload: { ...payload, arguments: 0 } }).replace(
      '"arguments":0',
      `"arguments":${json}`,
    )
  }
  it.each([
    ['{"n":9007199254740993}', /number 9007199254740993 can not be kept exactly/],
    // A number holds it, and would write it with other digits.
    ['{"n":1152921504606846976}', /number 1152921504606846976 can not be kept exactly/],
    ['{"text":"\\ud83d"}', /arguments: holds half a character/],
    ['{"\\udc00":1,"__proto__":1}', /arguments: holds half a character/],
    [`${'{"a":'.repeat(33)}1${'}'.repeat(33)}`, /arguments: is nested deeper than 32/],
    [`{"a":"${'x'.repeat(262_144)}"}`, /arguments: is larger than 262144 bytes/],
    ['[]', /arguments: has to be a JSON object/],
  ])('with arguments %s is refused for the true reason', (json, problem) => {
    const decoded = decode(withArguments(json))
    expect(decoded).toMatchObject({ outcome: 'invalid', problem: expect.stringMatching(problem) })
  })
  it.each(['{"n":9007199254740992,"m":-9007199254740991}', '{"__proto__":{"a":1},"a b":[null]}'])(
    'with arguments %s comes out as it came in',
    (json) => {
      const decoded = decode(withArguments(json))
      if (decoded.outcome !== 'record') throw new Error(JSON.stringify(decoded))
      expect(encode(decoded.record)).toContain(`"arguments":${json}`)
    },
  )
  it('that ends in CR is refused', () => {
    expect(decode(withArguments('{}')).outcome).toBe('record')
    expect(decode(`${withArguments('{}')}\r`)).toMatchObject({
      ...{ outcome: 'invalid', problem: expect.stringContaining('CR') },
    })
  })
})

it('a decision that an older journal holds as a bare name is read, and goes out as an object', () => {
  const resolved = { type: 'approval_resolved', data: { approval_id: 'apr_01jpgb0qg0e008000000000000' } }
  const [first] = history('asked')
  const place = { ...first, sequence: 1, branch: 'main', metadata: undefined }
  const readings = ['deny', { type: 'deny' }].map((decision) =>
    readRecord({ ...place, ...resolved, data: { ...resolved.data, decision } }),
  )
  expect(readings[0]).toEqual(readings[1])
  const [reading] = readings
  if (!reading?.ok) throw new Error(JSON.stringify(reading))
  expect(encode(reading.record)).toContain('"decision":{"type":"deny"}')
})

it('a session of ours names its engine as a profile of the wire', () => {
  const [first] = history('asked')
  if (first?.type !== 'session_created') throw new Error('there is one')
  const line = encode({ ...first, data: { profile_id: 'external:command' } })
  expect(line).toContain('"profileId":"external/command"')
  expect(decode(line).outcome).toBe('record')
  expect(() => encode({ ...first, data: { profile_id: 'Of Old' } })).toThrow(TypeError)
})
