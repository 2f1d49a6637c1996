import type { Tool } from './table/tool.ts'
import { toolNamed } from './tools.ts'

/** What the words of a command come to. Paths are relative, without `./` and a trailing slash. */
export type Words = {
  text: string
  /** Tools that it calls. */
  tools: Set<Tool>
  /** Files, folders and patterns that it names as what is run or looked at. */
  paths: string[]
  /** Names that count only as one file: where modules are looked for, and values of variables. */
  files: string[]
  /** Folders that it changes to. */
  folders: string[]
  /** Files that it gives to a tool as its instructions. */
  instructions: string[]
  /** All words that are no options, in order, as they stand. */
  plain: string[]
}

const separators = /[\s'"`;|&()<>{}$]+/
const changesFolder = new Set([
  'cd',
  'pushd',
  '-C',
  '--prefix',
  '--cwd',
  '--directory',
  '--chdir',
  '-w',
  '--workspace',
  '--filter',
  '-F',
  '--working-directory',
])
const searchPath = new Set([
  '--cov',
  '--source',
  '--include',
  '--omit',
  '--exclude',
  '--extend-exclude',
  '--ignore',
  '--ignore-path',
  '--pythonpath',
  '--rootdir',
  '-I',
  '-L',
  '-isystem',
])

const pathOf = (word: string): string => word.replace(/^(?:\.?\/)+/, '').replace(/\/+(?:\.{3})?$/, '')

const canBePath = (word: string): boolean =>
  /[\w*?]/.test(word) &&
  !word.startsWith('-') &&
  !/^[*?.]+$/.test(word) &&
  !word.includes('..') &&
  !word.endsWith('\\') &&
  !/^[!#]/.test(word)

const parts = (text: string): string[] => text.split(/[=,:]+/).filter((part) => part !== '')

/** An option with the value that it may have, which is the next word where none is joined to it. */
const optionOf = (token: string, next: string | undefined): { name: string; value: string } => {
  const at = token.indexOf('=')
  return at < 0
    ? { name: token, value: next ?? '' }
    : { name: token.slice(0, at), value: token.slice(at + 1) }
}

type Given = { name: string; value: string }

/** Reads a command as a shell would split it, near enough: quotes and operators only separate. */
export const wordsOf = (command: string): Words => {
  const tokens = command.split(separators).filter((token) => token !== '')
  const given: Given[] = []
  const found = {
    paths: [] as string[],
    files: [] as string[],
    folders: [] as string[],
    plain: [] as string[],
  }
  tokens.forEach((token, index) => {
    const before = tokens[index - 1] ?? ''
    const assigned = /^[A-Za-z_]\w*\+?=(.*)$/.exec(token)?.[1]
    const option = (assigned ?? token).startsWith('-')
      ? optionOf(assigned ?? token, assigned === undefined ? tokens[index + 1] : undefined)
      : { name: token, value: tokens[index + 1] ?? '' }
    given.push(option)
    if (token.startsWith('-')) {
      const joined = token.includes('=') ? parts(option.value) : []
      if (changesFolder.has(option.name)) found.folders.push(...joined)
      else if (searchPath.has(option.name)) found.files.push(...joined)
      else found.paths.push(...joined)
      found.plain.push(...joined)
    } else if (assigned !== undefined) {
      found.files.push(...parts(assigned))
      found.plain.push(...parts(assigned))
    } else {
      if (changesFolder.has(before)) found.folders.push(token)
      else if (searchPath.has(before)) found.files.push(...parts(token))
      else if (before === '-m') found.paths.push(...moduleFiles(token))
      found.paths.push(...(changesFolder.has(before) || searchPath.has(before) ? [] : parts(token)))
      found.plain.push(token, ...parts(token).filter((part) => part !== token))
    }
  })
  const tools = new Set(found.plain.flatMap((word) => calledBy(word)))
  const options = new Set([...tools].flatMap((tool) => tool.options ?? []))
  return {
    text: command,
    tools,
    paths: found.paths.map(pathOf).filter(canBePath),
    files: [...found.files, ...found.folders].map(pathOf).filter(canBePath),
    folders: found.folders.map(pathOf).filter(canBePath),
    instructions: given
      .filter(({ name }) => options.has(name))
      .flatMap(({ value }) => parts(value).flatMap((part) => [part, ...moduleFiles(part)]))
      .map(pathOf)
      .filter(canBePath),
    plain: found.plain,
  }
}

/** A module as `-m` takes it, as a folder and as a file. */
const moduleFiles = (name: string): string[] => {
  const path = name.replaceAll('.', '/')
  return [path, `${path}.py`]
}

/** The tools of a word; one that lies in `node_modules` is also known by the folders there. */
const calledBy = (word: string): Tool[] => {
  const words = word.includes('node_modules/') ? word.split('/') : [word]
  return words.flatMap((part) => toolNamed(part) ?? [])
}
