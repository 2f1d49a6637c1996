import { type Detector, firstOf } from './detector.ts'

const runner = (tool: string, looksFor: string, ...paths: string[]): Detector => ({
  looksFor,
  find(files) {
    const source = firstOf(files, ...paths)
    const text = source === null ? null : files.read(source)
    if (source === null || text === null) return null
    const name = ['test', 'check'].find((one) => declaresTarget(text, one))
    return name === undefined ? null : { commands: [`${tool} ${name}`], setup: [], sources: [source] }
  },
})

/** `name:` at the start of a line, alone or among others, and no `name := value`. */
const declaresTarget = (text: string, name: string): boolean =>
  new RegExp(`^(?:[\\w./-]+[ \\t]+)*${name}(?:[ \\t][^:=\\n]*)?::?(?!=)`, 'm').test(text)

/**
 * General task runners; they mostly call the tools of an ecosystem, so they count only when none was found.
 */
export const runnerDetectors: readonly Detector[] = [
  runner('make', 'a Makefile with a target test or check', 'GNUmakefile', 'makefile', 'Makefile'),
  runner('just', 'a justfile with a recipe test or check', 'justfile', 'Justfile', '.justfile'),
]
