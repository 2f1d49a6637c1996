import type { ProcessResult } from '../../process/run.ts'

/** A tool that runs something else: its command, with the name of what it runs, and whether the output says that this is not there. */
type Runner = { command: RegExp; saysMissing: (name: string, output: string) => boolean }

const runners: readonly Runner[] = [
  {
    // CPython 3.8 to 3.14: one line, before anything was run.
    command: /^\S*python[\d.]*\s+-m\s+([\w.]+)(?:\s|$)/,
    saysMissing: (name, output) => /^\S*python[\d.]*: No module named (\S+)$/.exec(output)?.[1] === name,
  },
  {
    // Node 18 to 24: the loader's own trace, and nobody required the file.
    command: /^(?:\S*\/)?node\s+([^\s-]\S*)(?:\s|$)/,
    saysMissing: (name, output) =>
      output.startsWith('node:internal/modules/') &&
      output.includes('requireStack: []') &&
      /^Error: Cannot find module '(.*)'$/m.exec(output)?.[1]?.endsWith(`/${name.replace(/^\.\//, '')}`) ===
        true,
  },
]

/** Whether a command is one call of one program, so that its output is that program's alone. */
const isPlain = (command: string): boolean => !/[;&|<>`$()\n\\'"]/.test(command)

/**
 * Whether a run shows beyond doubt that what it should run is not there: the one thing that was printed is the known
 * tool's own line. Anything else is a verdict on the work.
 */
export const runnerIsMissing = (command: string, { exitCode, head, bytes }: ProcessResult): boolean => {
  const plain = command.trim()
  if (exitCode !== 1 || bytes > Buffer.byteLength(head) || !isPlain(plain)) return false
  return runners.some(({ command: form, saysMissing }) => {
    const name = form.exec(plain)?.[1]
    return name !== undefined && saysMissing(name, head.trim())
  })
}
