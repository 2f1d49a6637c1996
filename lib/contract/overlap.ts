import ignore from 'ignore'
import type { Contract } from './schema.ts'

/** A check and the changed paths that its command executes or reads its instructions from. */
export type Overlap = { check: string; paths: string[] }

/** What a tool reads besides the paths it is given: its own declarations, and for a test runner the tests. */
type ToolInputs = { tools: RegExp; inputs: readonly string[] }

const testPaths = [
  ...['test/', 'tests/', '__tests__/', 'spec/', 'specs/', 'e2e/', 'testdata/', 'fixtures/'],
  ...['*.test.*', '*.spec.*', '*_test.*', '*_spec.*', 'test_*', '*Test.*', '*Tests.*', 'conftest.py'],
]

const toolInputs: readonly ToolInputs[] = [
  {
    tools: /\b(?:npm|npx|pnpm|yarn|bun|node|vitest|jest|mocha)\b/,
    inputs: ['package.json', 'vitest.config.*', 'vite.config.*', 'jest.config.*', '.mocharc*'],
  },
  { tools: /\bg?make\b/, inputs: ['Makefile', 'makefile', 'GNUmakefile', '*.mk'] },
  { tools: /\bjust\b/, inputs: ['justfile', 'Justfile', '.justfile'] },
  { tools: /\btask\b/, inputs: ['Taskfile.*'] },
  { tools: /\bcargo\b/, inputs: ['Cargo.toml', 'build.rs', '.cargo/'] },
  { tools: /\bgo\b/, inputs: ['go.mod'] },
  {
    tools: /\b(?:pytest|py\.test|tox|nox|unittest)\b/,
    inputs: ['pyproject.toml', 'pytest.ini', 'setup.cfg', 'tox.ini', 'noxfile.py'],
  },
  { tools: /\bgradlew?\b/, inputs: ['*.gradle', '*.gradle.kts', 'gradle/', 'gradlew'] },
  { tools: /\bmvnw?\b/, inputs: ['pom.xml', '.mvn/', 'mvnw'] },
  { tools: /\bmix\b/, inputs: ['mix.exs', 'config/'] },
  { tools: /\b(?:composer|phpunit)\b/, inputs: ['composer.json', 'phpunit.xml*'] },
  { tools: /\b(?:rake|rspec|bundle)\b/, inputs: ['Rakefile', 'Gemfile', '.rspec', '*.rake'] },
  { tools: /\bdeno\b/, inputs: ['deno.json', 'deno.jsonc'] },
  { tools: /\bdotnet\b/, inputs: ['*.sln', '*.csproj', '*.fsproj'] },
]

const runsTests =
  /\b(?:tests?|check|spec|verify|ci|vitest|jest|mocha|pytest|py\.test|tox|nox|unittest|rspec|rake|phpunit|ctest)\b/

/**
 * Which checks execute a path that this diff changed (spec/coder-session.md 10): shown to the reviewer,
 * blocking nothing. A guess from the words of the command; it prefers a false alarm to a miss.
 */
export const contractOverlap = (contract: Contract, changedPaths: readonly string[]): Overlap[] =>
  contract.checks.flatMap((check) => {
    const touches = matcher(check.command)
    const paths = changedPaths.filter(touches)
    return paths.length === 0 ? [] : [{ check: check.name, paths }]
  })

/** The sentence that every surface shows for an overlap, or null when there is none. */
export const overlapDisclosure = (overlap: readonly Overlap[]): string | null => {
  if (overlap.length === 0) return null
  const checks = overlap.map(({ check, paths }) => `"${check}" (${named(paths)})`).join(', ')
  return (
    `This change touches files that its own contract executes: ${checks}. ` +
    'Read those files before you rely on the checks.'
  )
}

const shown = 3

const named = (paths: readonly string[]): string => {
  const rest = paths.length - shown
  return paths.slice(0, shown).join(', ') + (rest > 0 ? ` and ${rest} more` : '')
}

const matcher = (command: string): ((path: string) => boolean) => {
  const declared = ignore().add([
    ...toolInputs.flatMap(({ tools, inputs }) => (tools.test(command) ? inputs : [])),
    ...(runsTests.test(command) ? testPaths : []),
  ])
  const words = commandPaths(command)
  const given = ignore().add(words.map((word) => `/${word}`))
  // A command may change directory first: a path that ends in the word counts as well.
  const suffixes = words.filter((word) => /[./]/.test(word) && !/[*?[]/.test(word)).map((word) => `/${word}`)
  return (path) =>
    ignore.isPathValid(path) &&
    (declared.ignores(path) || given.ignores(path) || suffixes.some((suffix) => `/${path}`.endsWith(suffix)))
}

/** Words of a command that can be paths, relative and without a trailing slash; `-m a.b` is read as `a/b`. */
const commandPaths = (command: string): string[] => {
  const modules = [...command.matchAll(/(?:^|\s)-m\s+([\w.]+)/g)].map(([, name = '']) =>
    name.replaceAll('.', '/'),
  )
  const words = command.split(/[\s'"`;|&()<>=,:{}$]+/)
  return [...words, ...modules, ...modules.map((name) => `${name}.py`)]
    .map((word) => word.replace(/^(?:\.?\/)+/, '').replace(/\/+(?:\.{3})?$/, ''))
    .filter((word) => /[\w*?]/.test(word) && !word.startsWith('-') && !/^[*?.]+$/.test(word))
    .filter((word) => !word.includes('..') && !word.endsWith('\\') && !/^[!#]/.test(word))
}
