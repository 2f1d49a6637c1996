import { join } from 'node:path/posix'
import ignore from 'ignore'
import { type Reached, type ReadFile, reached } from './reached.ts'
import { toolsOfKind } from './tools.ts'

/** What a path is to a command: it tells a tool what to do, or it is run or looked at. Null: neither. */
export type Part = 'instructions' | 'subject' | null

const testPaths = [
  ...['test/', 'tests/', '__tests__/', 'spec/', 'specs/', 'e2e/', 'testdata/', 'fixtures/'],
  ...['*.test.*', '*.spec.*', '*_test.*', '*_spec.*', 'test_*', '*Test.*', '*Tests.*', 'conftest.py'],
]

const runsTests =
  /\b(?:tests?|check|spec|verify|ci|vitest|jest|mocha|ava|tap|karma|jasmine|playwright|cypress|pytest|py\.test|tox|nox|nose2?|unittest|nextest|gotestsum|ginkgo|rspec|rake|cucumber|phpunit|pest|ctest|prove|busted|bats)\b/

/**
 * What paths are to a command and to all that it starts. A guess from words, which prefers a false alarm to a miss. `read`
 * gives files as the base has them.
 */
export const executedBy = async (command: string, read: ReadFile): Promise<(path: string) => Part> => {
  const all = await reached(command, read)
  const isRead = ignore().add(instructionPatterns(all))
  const isGiven = oneOf(instructionFiles(all))
  const isSubject = subjects(all)
  return (path) => {
    if (!ignore.isPathValid(path)) return null
    // A link can stand where a folder is looked for.
    if (isRead.ignores(path) || isRead.ignores(`${path}/`) || isGiven(path)) return 'instructions'
    return isSubject(path) ? 'subject' : null
  }
}

const wordsIn = ({ commands, mentioned }: Reached) => [...commands, ...mentioned.map(({ words }) => words)]

/** Each list of a tool has its exceptions behind its patterns, so all lists stay as they are. */
const instructionPatterns = (all: Reached): string[] => {
  const called = wordsIn(all).flatMap(({ tools }) => [...tools])
  const tools = new Set([...called, ...[...all.kinds].flatMap(toolsOfKind)])
  return [...tools].flatMap(({ reads }) => reads)
}

const instructionFiles = (all: Reached): string[] => [
  ...wordsIn(all).flatMap(({ instructions }) => instructions),
  ...all.commands.flatMap(({ paths }) => paths.filter((path) => /\.(?:ba|z|k)?sh$/.test(path))),
]

/** A command may change directory first: a path that ends in the word counts as well. */
const oneOf = (words: readonly string[]): ((path: string) => boolean) => {
  const whole = new Set(words)
  const ends = words.filter((word) => /[./]/.test(word) && !/[*?[]/.test(word)).map((word) => `/${word}`)
  return (path) => whole.has(path) || ends.some((end) => `/${path}`.endsWith(end))
}

const endings = ['', '.js', '.cjs', '.mjs', '.ts', '.py', '.rb', '.sh']

const subjects = ({ commands, mentioned }: Reached): ((path: string) => boolean) => {
  const isTest = ignore().add(commands.some(({ text }) => runsTests.test(text)) ? testPaths : [])
  const paths = commands.flatMap((words) => words.paths)
  const isNamed = ignore().add(paths.map((path) => `/${path}`))
  const isOneOf = oneOf([...paths, ...commands.flatMap(({ files }) => files)])
  const isMentioned = new Set(
    mentioned.flatMap(({ folder, words }) =>
      [...words.paths, ...words.files].flatMap((path) =>
        endings.flatMap((ending) => [`${path}${ending}`, join(folder, `${path}${ending}`)]),
      ),
    ),
  )
  return (path) =>
    isTest.ignores(path) ||
    isTest.ignores(`${path}/`) ||
    isNamed.ignores(path) ||
    isOneOf(path) ||
    isMentioned.has(path)
}
