import { dirname } from 'node:path/posix'
import { scriptsRun } from './package-scripts.ts'
import type { Ecosystem, Tool } from './table/tool.ts'
import { type Words, wordsOf } from './words.ts'

/** The text of a file as the base has it; null where there is none, or where it is no text of a size to be read. */
export type ReadFile = (path: string) => Promise<string | null>

/** What a command comes to when what it starts is followed. */
export type Reached = {
  /** The command itself, and the commands that it is known to run. */
  commands: Words[]
  /** Files that say what else is run, with their folders: their words may be commands. */
  mentioned: { folder: string; words: Words }[]
  /** Kinds of which any tool may be run. */
  kinds: Set<Ecosystem>
}

const deepest = 4
const mostFiles = 48

const isScript = (path: string): boolean =>
  /\.(?:sh|bash|zsh|ksh|mk|py|[cm]?[jt]s|rb|pl|php|ps1|exs?|bat|cmd)$/.test(path) || /\/[^./]+$/.test(path)

const withoutComments = (text: string): string => text.replaceAll(/^\s*(?:#(?!!)|\/\/|\*).*$/gm, '')

/**
 * Follows a command through the scripts of a package.json, the files of runners such as make, and the scripts that it
 * names, as the base has them. What can't be read is taken to start every tool of its kind.
 */
export const reached = async (command: string, read: ReadFile): Promise<Reached> => {
  const found: Reached = { commands: [], mentioned: [], kinds: new Set() }
  const seen = new Set<string>()

  const textOf = async (path: string): Promise<string | null> => {
    if (seen.size >= mostFiles) return null
    seen.add(path)
    return read(path)
  }

  const followFile = async (path: string, depth: number): Promise<boolean> => {
    if (seen.has(path)) return true
    const text = await textOf(path)
    if (text === null) return false
    const words = wordsOf(withoutComments(text))
    found.mentioned.push({ folder: dirname(path), words })
    await followWords(words, depth + 1, false)
    return true
  }

  const followPackage = async (words: Words, depth: number): Promise<boolean> => {
    const text = await read('package.json')
    const commands = text === null ? null : scriptsRun(text, words)
    if (commands === null) return false
    for (const script of commands) await followCommand(script, depth + 1)
    return commands.every((script) => wordsOf(script).tools.size > 0)
  }

  const followTool = async (tool: Tool, words: Words, depth: number): Promise<boolean> => {
    if (tool.scripts?.includes('package.json')) return followPackage(words, depth)
    let isKnown = false
    for (const folder of ['', ...words.folders.map((name) => `${name}/`)]) {
      for (const name of tool.scripts ?? []) if (await followFile(`${folder}${name}`, depth)) isKnown = true
    }
    return isKnown
  }

  /** The names of runners are ordinary words: in a file they tell nothing of what can't be read. */
  const followWords = async (words: Words, depth: number, isCommand: boolean): Promise<void> => {
    if (depth > deepest) return
    for (const tool of words.tools) {
      if (!tool.scripts && !tool.starts) continue
      const isKnown = await followTool(tool, words, depth)
      if (!isKnown && tool.starts && (isCommand || tool.ecosystem !== 'any')) found.kinds.add(tool.starts)
    }
    const scripts = new Set([...words.paths.filter(isScript), ...words.instructions])
    for (const path of scripts) await followFile(path, depth)
  }

  const followCommand = async (text: string, depth: number): Promise<void> => {
    if (found.commands.some((words) => words.text === text)) return
    const words = wordsOf(text)
    found.commands.push(words)
    await followWords(words, depth, true)
  }

  await followCommand(command, 0)
  return found
}
