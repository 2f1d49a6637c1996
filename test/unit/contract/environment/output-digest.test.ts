import { describe, expect, it } from 'vitest'
import { outputDigest } from '../../../../lib/contract/environment/output-digest.ts'
import { sameOutput } from '../../../../lib/contract/environment/same-output.ts'
import { aResult } from '../../../support/sessions.ts'

const digest = (text: string, name = 'one') =>
  outputDigest(text, { tree: `/run/${name}/tree`, root: `/run/${name}` })

describe('the digest of an output', () => {
  it.each([
    ['times', 'at 2030-01-01T10:00:00.123Z, 10:00:01', 'at 2030-12-31T23:59:59Z, 23:00:59.5'],
    ['durations', '2 tests in 0.32s (12 ms)\n# duration_ms 1.5', '2 tests in 10.1s (7 ms)\n# duration_ms 22'],
    ['temporary paths', 'open /tmp/a-1x/file: no', 'open /tmp/b-22/file: no'],
    ['hex ids', 'id 0x7ffd01aa and deadbee1', 'id 0x7ffd02ab and deadbee23'],
    ['ids', '8b0c2f0e-1d7b-4f53-9a3f-0123456789ab', '00000000-1d7b-4f53-9a3f-0123456789ab'],
    ['line ends', 'a\r\nb', 'a\nb'],
  ])('leaves out %s', (_, one, other) => {
    expect(digest(one)).toBe(digest(other))
  })

  it('leaves out where the run took place', () => {
    expect(digest('/run/one/tree/a.js:1 /run/one/home/.npm/x')).toBe(
      digest('/run/two/tree/a.js:1 /run/two/home/.npm/y', 'two'),
    )
  })

  it.each([
    ['a count', '2 failed', '3 failed'],
    ['a file', '/run/one/tree/a.js:1', '/run/one/tree/b.js:1'],
    ['a line', '/run/one/tree/a.js:1', '/run/one/tree/a.js:2'],
    ['a word in hex letters', 'added', 'faded'],
    ['a number', 'expected 1234567', 'expected 1234568'],
    ['a blank', 'a', 'a '],
  ])('keeps %s', (_, one, other) => {
    expect(digest(one)).not.toBe(digest(other))
  })
})

describe('the same output as before any work', () => {
  const red = (output_digest: string, more = {}) =>
    aResult({ verdict: 'failed', exit_code: 1, output_digest, ...more })
  it.each([
    ['at the first evaluation', [red('a')], [red('a')], null, ['unit']],
    ['at every one since', [red('a')], [red('a')], ['unit'], ['unit']],
    ['not when it once was another', [red('a')], [red('a')], [], []],
    ['not with other output', [red('a')], [red('b')], null, []],
    ['not with another exit code', [red('a')], [red('a', { exit_code: 2 })], null, []],
    ['not without a digest', [aResult({ verdict: 'failed' })], [aResult({ verdict: 'failed' })], null, []],
  ])('%s', (_, baseline, results, before, expected) => {
    expect(sameOutput(baseline, results, before)).toEqual(expected)
  })
})
