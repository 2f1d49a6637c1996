import { describe, expect, it } from 'vitest'
import { draftContract } from '../../../lib/contract/draft.ts'
import { contractHash } from '../../../lib/contract/hash.ts'
import { validateContract } from '../../../lib/contract/validate.ts'

const draft = (files: Record<string, string>) => {
  const drafted = draftContract({
    has: (path) => Object.hasOwn(files, path),
    read: (path) => files[path] ?? null,
    list: () => Object.keys(files),
  })
  if ('problem' in drafted) return drafted.problem.code
  const { contract, sources } = drafted
  expect(validateContract(contract, { provenance: 'runtime_generated' })).toEqual([])
  expect(sources.length).toBeGreaterThan(0)
  return { commands: contract.checks.map((check) => check.command), setup: contract.setup }
}

const pkg = (scripts: Record<string, string>, more: object = { devDependencies: { vitest: '1' } }) =>
  JSON.stringify({ scripts, ...more })
const placeholder = 'echo "Error: no test specified" && exit 1'

describe('what the repository declares', () => {
  it.each<[string, Record<string, string>, string[], string[]]>([
    ['npm', { 'package.json': pkg({ test: 'vitest' }), 'package-lock.json': '' }, ['npm test'], ['npm ci']],
    [
      'npm, nothing to install',
      { 'package.json': pkg({ test: 'x' }, {}), 'package-lock.json': '' },
      ['npm test'],
      [],
    ],
    ['npm, no lock file', { 'package.json': pkg({ test: 'x' }) }, ['npm test'], []],
    [
      'pnpm',
      { 'package.json': pkg({ test: 'x' }), 'pnpm-lock.yaml': '' },
      ['pnpm test'],
      ['pnpm install --frozen-lockfile'],
    ],
    [
      'yarn',
      { 'package.json': pkg({ test: 'x' }), 'yarn.lock': '' },
      ['yarn test'],
      ['yarn install --frozen-lockfile'],
    ],
    [
      'yarn 4',
      {
        'package.json': pkg({ test: 'x' }, { packageManager: 'yarn@4.1.0', workspaces: ['a'] }),
        'yarn.lock': '',
      },
      ['yarn test'],
      ['yarn install --immutable'],
    ],
    [
      'bun',
      { 'package.json': pkg({ test: 'x' }), 'bun.lock': '' },
      ['bun run test'],
      ['bun install --frozen-lockfile'],
    ],
    [
      'no test but others',
      { 'package.json': pkg({ test: placeholder, lint: 'l', build: 'b', start: 's' }) },
      ['npm run lint', 'npm run build'],
      [],
    ],
    ['cargo', { 'Cargo.toml': '' }, ['cargo test'], []],
    ['go', { 'go.mod': '' }, ['go test ./...'], []],
    ['pyproject', { 'pyproject.toml': '[tool.pytest.ini_options]' }, ['python3 -m pytest'], []],
    ['tox.ini', { 'tox.ini': 'commands = pytest' }, ['python3 -m pytest'], []],
    ['Python tests', { 'tests/test_a.py': '' }, ['python3 -m pytest'], []],
    ['make', { Makefile: 'all: x\n\ntest: all\n\tx\n' }, ['make test'], []],
    ['make check', { Makefile: '.PHONY: a\ncheck:\n' }, ['make check'], []],
    ['make behind npm', { Makefile: 'test:\n', 'package.json': pkg({ test: 'x' }) }, ['npm test'], []],
    ['gradle', { gradlew: '', 'build.gradle': '' }, ['./gradlew test'], []],
    ['maven', { 'pom.xml': '', mvnw: '' }, ['./mvnw --batch-mode test'], []],
    ['mix', { 'mix.exs': '' }, ['mix test'], []],
    ['composer', { 'composer.json': '{"scripts": {"test": "phpunit"}}' }, ['composer test'], []],
    ['rspec', { Gemfile: '', 'spec/a_spec.rb': '' }, ['bundle exec rspec'], []],
    ['deno', { 'deno.json': '{}' }, ['deno test'], []],
    ['.NET', { 'App.sln': '' }, ['dotnet test'], []],
    ['two of them', { 'package.json': pkg({ test: 'x' }), 'go.mod': '' }, ['npm test', 'go test ./...'], []],
  ])('%s', (_, files, commands, setup) => {
    expect(draft(files)).toEqual({ commands, setup })
  })

  it.each<[string, Record<string, string>]>([
    ['nothing', {}],
    ['a package that never said how to test', { 'package.json': pkg({ test: placeholder, start: 'x' }) }],
    ['package.json that is not JSON', { 'package.json': '{' }],
    ['package.json of another shape', { 'package.json': '[]' }],
    ['a Makefile without such a target', { Makefile: 'test := x\ntesting:\n\ttest: x\n' }],
    ['pyproject without pytest', { 'pyproject.toml': '[project]' }],
  ])('%s is a typed problem', (_, files) => {
    expect(draft(files)).toBe('nothing_declared')
  })

  it('the problem says what was looked for', () => {
    const drafted = draftContract({ has: () => false, read: () => null, list: () => [] })
    expect(drafted).toMatchObject({ problem: { detail: expect.stringContaining('Cargo.toml; go.mod') } })
  })

  it('the same files give the same contract', () => {
    const files = { has: (path: string) => path === 'go.mod', read: () => null, list: () => ['go.mod'] }
    const [one, two] = [draftContract(files), draftContract(files)]
    if ('problem' in one || 'problem' in two) throw new Error('no draft')
    expect(contractHash(one.contract)).toBe(contractHash(two.contract))
    expect(one.sources).toEqual(['go.mod'])
  })
})
