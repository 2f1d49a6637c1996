import { describe, expect, it } from 'vitest'
import { contractHash } from '../../../lib/contract/hash.ts'
import { type Contract, type ContractCheck, provenanceSchema } from '../../../lib/contract/schema.ts'
import { isTrusted } from '../../../lib/contract/trust.ts'
import { contractWarnings, validateContract } from '../../../lib/contract/validate.ts'
import { limits } from '../../../lib/limits.ts'
import { aContract } from './contracts.ts'

const paths = (contract: Contract, provenance: 'operator_supplied' | 'model_derived' = 'operator_supplied') =>
  validateContract(contract, { provenance }).map((error) => error.path)

const capture: Partial<ContractCheck> = { name: 'size', command: 'du', baseline: true }
const against = (baseline: string, expected: NonNullable<ContractCheck['differential']>['expect']) => ({
  differential: { baseline, expect: expected },
})

describe('structural validation', () => {
  it.each<[string, Contract, string[]]>([
    ['a plain check', aContract(), []],
    ['no checks', aContract([]), ['checks']],
    ['blank name', aContract([{ name: '  ' }]), ['checks.0.name']],
    ['name with a mark of direction', aContract([{ name: 'a\u202eb' }]), ['checks.0.name']],
    ['name of two lines', aContract([{ name: 'a\nb' }]), ['checks.0.name']],
    ['reserved name', aContract([{ name: 'protect' }]), ['checks.0.name']],
    ['duplicate name', aContract([{}, { name: 'unit ' }]), ['checks.1.name']],
    ['blank command', aContract([{ command: ' \n' }]), ['checks.0.command']],
    ['NUL in a command', aContract([{ command: 'a\0b' }]), ['checks.0.command']],
    ['blank setup', aContract([{}], { setup: ['npm ci', ' '] }), ['setup.1']],
    ['nothing asserted', aContract([{ expect_exit_zero: false }]), ['checks.0']],
    ['only output asserted', aContract([{ expect_exit_zero: false, output_contains: 'x' }]), []],
    ['only captures', aContract([capture]), ['checks']],
    [
      'a capture that asserts',
      aContract([{ ...capture, output_contains: 'x', runs: 2 }, {}]),
      ['checks.0.output_contains', 'checks.0.runs'],
    ],
    ['a comparison', aContract([capture, against('size', 'changed')]), []],
    ['an unknown capture', aContract([against('size', 'changed')]), ['checks.0.differential.baseline']],
    [
      'a capture that is an ordinary check',
      aContract([{ name: 'size' }, against('size', 'unchanged')]),
      ['checks.1.differential.baseline'],
    ],
    [
      'an unbounded delta',
      aContract([capture, against('size', { delta_within: {} })]),
      ['checks.1.differential.expect.delta_within'],
    ],
    [
      'a delta of nothing',
      aContract([capture, against('size', { delta_within: { min: 2, max: 1 } })]),
      ['checks.1.differential.expect.delta_within'],
    ],
    ['one bound', aContract([capture, against('size', { delta_within: { max: 0 } })]), []],
    [
      'too large',
      aContract(
        Array.from({ length: 9 }, (_, at) => ({ name: `${at}`, command: 'x'.repeat(limits.command) })),
      ),
      [''],
    ],
  ])('%s', (_, contract, expected) => {
    expect(paths(contract)).toEqual(expected)
  })

  it.each([
    '<name>',
    '<short unique name>',
    'check name',
    'Check-Name',
    'TODO',
    'tbd',
    'Placeholder',
    '[name]',
    '...',
    'name',
  ])('the placeholder %s is no name', (name) => {
    expect(paths(aContract([{ name }]))).toEqual(['checks.0.name'])
  })

  it.each(['todo list renders', 'parses Vec<String>', 'name is unique', 'n'])('%s is a name', (name) => {
    expect(paths(aContract([{ name }]))).toEqual([])
  })

  it.each([
    ...['true', ':', 'exit 0', 'exit', 'echo ok', 'printf ok', 'cargo --version', 'node -v', 'go version'],
    ...['cargo --version && rustc --version', 'echo a; true', 'command -v node', 'node -v >/dev/null 2>&1'],
    ...['java -version', '# nothing\ntrue'],
  ])('%s gates nothing: refused in a draft, a person may give it', (command) => {
    expect(paths(aContract([{ command }]), 'model_derived')).toEqual(['checks.0.command'])
    expect(paths(aContract([{ command }]))).toEqual([])
  })

  it.each(['./cli --version', 'npm test', 'exit 1', 'test -f a', 'echo "$(./cli)"', 'node -v && npm test'])(
    '%s is a check in a draft',
    (command) => {
      expect(paths(aContract([{ command }]), 'model_derived')).toEqual([])
    },
  )

  it.each(['$json:/a=1', '$json:=[]', '$json:/a~1b/0="x"', '$json:/a=b=1', '$json:/a= {"b": null}'])(
    '%s is a JSON assertion',
    (output_contains) => {
      expect(paths(aContract([{ output_contains }]))).toEqual([])
    },
  )

  it.each(['$json:', '$json:/a', '$json:a=1', '$json:/a=x', '$json:/a~2=1', '$json:/a='])(
    '%s is none',
    (output_contains) => {
      expect(paths(aContract([{ output_contains }]))).toEqual(['checks.0.output_contains'])
    },
  )

  it.each(['test/**', '/package.json', '*.lock', 'a b/', '\\#x', 'docs/[a-c]*'])('protects %s', (pattern) => {
    expect(paths(aContract([{}], { protect: [pattern] }))).toEqual([])
  })

  it.each([' ', '# all', '!keep', 'a\nb', '../x', './x', 'a\\'])('%j is no pattern', (pattern) => {
    expect(paths(aContract([{}], { protect: [pattern] }))).toEqual(['protect.0'])
  })
})

it.each([
  ['cmd | grep -q ok', 1],
  ['set -o pipefail; cmd | grep -iqE "a b"', 1],
  ['cmd | egrep --quiet x', 1],
  ['cmd | /usr/bin/grep -q ok', 1],
  ['cmd | LC_ALL=C grep -q ok', 1],
  ['cmd | env LC_ALL=C command grep -q ok', 1],
  ['cmd | rg -q ok', 1],
  ["bash -o pipefail -c 'cmd | head -1'", 1],
  ['cmd | head -1', 0],
  ['cmd | mygrep -q ok', 0],
  ['grep -q ok file', 0],
  ['cmd | grep ok', 0],
])('%s: %i warnings', (command, count) => {
  expect(contractWarnings(aContract([{ command }]))).toHaveLength(count)
})

describe('identity', () => {
  it('does not depend on the order of keys', () => {
    const contract = aContract()
    const [check] = contract.checks
    const { checks, ...rest } = contract
    const turned = { checks: [Object.fromEntries(Object.entries(check ?? {}).toReversed())], ...rest }
    expect(contractHash(contract)).toMatch(/^sha256:[0-9a-f]{64}$/)
    expect(contractHash(Object.assign(aContract(), turned))).toBe(contractHash(contract))
  })

  it('white space in an expected output counts', () => {
    expect(contractHash(aContract([{ output_contains: 'a b' }]))).not.toBe(
      contractHash(aContract([{ output_contains: 'a  b' }])),
    )
  })

  it('only what a model derived is not trusted', () => {
    expect(provenanceSchema.options.filter((one) => !isTrusted(one))).toEqual(['model_derived'])
  })
})
