import { describe, expect, it } from 'vitest'
import { contractOverlap, overlapDisclosure } from '../../../lib/contract/overlap.ts'
import { embeddedResult, protectedChanges, protectResult } from '../../../lib/contract/protect.ts'
import { limits } from '../../../lib/limits.ts'
import { aContract } from './contracts.ts'

describe('protected paths', () => {
  it.each([
    [['test/**'], ['test/a.js', 'src/test/a.js', 'a.js'], ['test/a.js']],
    [['test/'], ['test/a/b.js', 'src/test/a.js'], ['test/a/b.js', 'src/test/a.js']],
    [['/ci.yml'], ['ci.yml', 'a/ci.yml'], ['ci.yml']],
    [['*.lock', '!yarn.lock'], ['a.lock', 'yarn.lock'], ['a.lock']],
    [['README'], ['readme', 'README'], ['README']],
    [['a'], ['ü/a', '..b', 'a b'], ['ü/a']],
    [[], ['a'], []],
  ])('%j of %j', (patterns, changed, expected) => {
    expect(protectedChanges(patterns, changed)).toEqual(expected)
  })

  it('is one result by the name protect', () => {
    const passed = { name: 'protect', passed: true, verdict: 'passed', reason: 'ok', output_head: '' }
    expect(protectResult([])).toMatchObject(passed)
    const failed = { name: 'protect', passed: false, verdict: 'failed', reason: 'protected_path_changed' }
    expect(protectResult(['a', 'b'])).toMatchObject({ ...failed, output_head: 'a\nb\n', output_bytes: 4 })
  })

  it('stays small whatever was changed', () => {
    const paths = Array.from({ length: 5000 }, (_, at) => `dir/€${at}`)
    const result = protectResult(paths)
    expect(Buffer.byteLength(result.output_head)).toBeLessThanOrEqual(limits.outputHead)
    expect(Buffer.byteLength(result.output_tail)).toBeLessThanOrEqual(limits.outputTail)
    expect(result.output_head + result.output_tail).not.toContain('\uFFFD')
    expect(result.output_tail.endsWith('dir/€4999\n')).toBe(true)
  })

  it('embedded repositories make a result only when there are any', () => {
    expect(embeddedResult([])).toBeNull()
    const failed = { name: 'no-embedded-repository', verdict: 'failed', reason: 'embedded_repository' }
    expect(embeddedResult(['vendor/x'])).toMatchObject({ ...failed, output_head: 'vendor/x\n' })
  })
})

const nothingAt = async () => null

describe('a contract that executes what the diff changed', () => {
  const changed = [
    'scripts/gate.sh',
    'src/a.js',
    'package.json',
    'test/a.test.js',
    'Makefile',
    'tests/run.py',
  ]
  it.each([
    ['./scripts/gate.sh --fast', ['scripts/gate.sh']],
    ['sh "scripts/gate.sh"', ['scripts/gate.sh']],
    ['cd scripts && ./gate.sh', ['scripts/gate.sh']],
    ['FLAGS=x bash scripts/*.sh', ['scripts/gate.sh']],
    ['./runner --dir=src', ['src/a.js']],
    ['npm test', ['package.json', 'test/a.test.js', 'tests/run.py']],
    ['npm run lint', ['package.json']],
    ['make all', ['package.json', 'Makefile']],
    ['python3 -m tests.run', ['test/a.test.js', 'tests/run.py']],
    ['node src/a.js', ['src/a.js', 'package.json']],
    ['true', []],
    ['cat "unclosed [x', []],
  ])('%s', async (command, expected) => {
    const { overlap } = await contractOverlap(aContract([{ command }]), changed, nothingAt)
    expect(overlap.flatMap(({ paths }) => paths)).toEqual(expected)
  })

  it('counts what setup executes too', async () => {
    const contract = aContract([{ command: 'true' }], { setup: ['sh scripts/gate.sh', 'npm ci'] })
    expect(await contractOverlap(contract, changed, nothingAt)).toMatchObject({
      overlap: [{ check: 'setup' }],
      instructions: ['scripts/gate.sh', 'package.json'],
    })
  })

  it('is told in one sentence', () => {
    expect(overlapDisclosure([])).toBeNull()
    const text = overlapDisclosure([{ check: 'unit', paths: ['a', 'b', 'c', 'd'] }])
    expect(text).toContain('"unit" (a, b, c and 1 more)')
  })
})
