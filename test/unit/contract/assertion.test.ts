import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { holdsJson, parseAssertion } from '../../../lib/contract/assertion.ts'
import { ByteSearch, firstNumber } from '../../../lib/contract/facts.ts'

const json = (output: string, text: string) => {
  const assertion = parseAssertion(text)
  if (!('kind' in assertion) || assertion.kind !== 'json') throw new Error('no JSON assertion')
  return holdsJson(output, assertion)
}

it.each([
  ['{"a":{"b":[1,2]}}', '$json:/a/b/1=2', 'met'],
  ['{"a":{"b":[1,2]}}', '$json:/a={"b":[1,2]}', 'met'],
  ['{"x":1,"a":2}\n', '$json:={"a":2,"x":1.0}', 'met'],
  ['{"a/b":{"m~n":null}}', '$json:/a~1b/m~0n=null', 'met'],
  ['{"a=b":1}', '$json:/a=b=1', 'met'],
  ['{"":1}', '$json:/=1', 'met'],
  ['{"a":1}', '$json:/a="1"', 'missing'],
  ['{"a":1}', '$json:/b=null', 'missing'],
  ['[1]', '$json:/01=1', 'missing'],
  ['{}', '$json:/constructor=null', 'missing'],
  ['warning\n{"a":1}', '$json:/a=1', 'not_json'],
  ['', '$json:=null', 'not_json'],
])('%s against %s: %s', (output, text, expected) => {
  expect(json(output, text)).toBe(expected)
})

describe('searching a stream', () => {
  it('finds what any cutting into chunks hides', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('a', 'b', '€'), minLength: 1, maxLength: 4 }),
        fc.array(fc.string({ unit: fc.constantFrom('a', 'b', '€'), maxLength: 5 })),
        fc.nat({ max: 7 }),
        (needle, parts, size) => {
          const bytes = Buffer.from(parts.join(''))
          const search = new ByteSearch(needle)
          for (let at = 0; at < bytes.length; at += size + 1) search.push(bytes.subarray(at, at + size + 1))
          expect(search.found).toBe(bytes.includes(needle))
        },
      ),
    )
  })
})

it.each([
  ['coverage: 82.5 %', 82.5],
  ['12 files', 12],
  ['-3', -3],
  ['1e3', 1000],
  ['node v24.1.0\n7', 7],
  ['none', null],
])('the first number of %j is %s', (text, expected) => {
  expect(firstNumber(text)).toBe(expected)
})
