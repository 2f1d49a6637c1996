import type { ProcessResult } from '../../process/run.ts'
import { runners } from './runners.ts'

/** Whether a command is one call of one program, so that its output is that program's alone. */
const isPlain = (command: string): boolean => !/[;&|<>`$()\n\\'"]/.test(command)

const shell = /^(?:\S*\/)?(?:ba|da|k|z)?sh\s+-[a-z]*c\s+(?:'([^']*)'|"([^"$`\\]*)")$/

/** What a command runs once the shells around it are taken off: `bash -lc 'x'` is x. */
const unwrapped = (command: string): string => {
  const plain = command.trim()
  const found = shell.exec(plain)
  const inner = found?.[1] ?? found?.[2]
  return inner === undefined ? plain : unwrapped(inner)
}

/** Whether a word of a call names what the tool says is missing, which it may tell by its whole path. */
const names = (word: string, missing: string): boolean => {
  const name = word.replace(/^\.\//, '').replace(/(?<=.)@[^/]*$/, '')
  return word === missing || name === missing || missing.endsWith(`/${name}`)
}

/**
 * Whether a run shows beyond doubt that what it should run is not there: the one thing that was printed is the known
 * tool's own line. Anything else is a verdict on the work.
 */
export const runnerIsMissing = (command: string, { exitCode, head, bytes }: ProcessResult): boolean => {
  const plain = unwrapped(command)
  if (exitCode === 0 || bytes > Buffer.byteLength(head) || !isPlain(plain)) return false
  return runners.some((runner) => {
    const called = exitCode === runner.exitCode ? runner.command.exec(plain) : null
    const missing = called && runner.missing(head.trim())
    if (!called || missing === null) return false
    return (called[1] ?? called[0]).split(/\s+/).some((word) => names(word, missing))
  })
}
