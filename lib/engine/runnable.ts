import { accessSync, constants, statSync } from 'node:fs'
import path from 'node:path'
import type { EngineCommand } from './requested.ts'

/**
 * Why a command engine cannot be started, for preflight; null when nothing speaks against it. An argument
 * list's first word has to be an executable file, absolute or on the PATH that the engine will get. A
 * relative path points into a tree that may not exist yet, and a shell line is the shell's to judge: both are
 * accepted.
 */
export const engineRunnable = (command: EngineCommand, pathVariable: string): string | null => {
  if (typeof command === 'string') return command.trim() === '' ? 'the engine command is empty' : null
  const [program = ''] = command
  if (program === '') return 'the engine command is empty'
  if (path.isAbsolute(program)) return fileProblem(program)
  if (program.includes('/')) return null
  const found = pathVariable
    .split(path.delimiter)
    .some((directory) => path.isAbsolute(directory) && fileProblem(path.join(directory, program)) === null)
  return found ? null : `the engine command ${program} is not on the PATH`
}

const fileProblem = (file: string): string | null => {
  if (!statSync(file, { throwIfNoEntry: false })?.isFile()) return `the engine command ${file} is not a file`
  try {
    accessSync(file, constants.X_OK)
    return null
  } catch {
    return `the engine command ${file} is not executable`
  }
}
