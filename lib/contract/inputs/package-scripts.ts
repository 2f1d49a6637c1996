import { z } from 'zod'
import type { Words } from './words.ts'

const packageSchema = z.object({ scripts: z.record(z.string(), z.string()).default({}) })

/** Words that run a script of another name. */
const runs: Record<string, readonly string[]> = {
  ...{ t: ['test'], tst: ['test'], it: ['install', 'test'], cit: ['install', 'test'] },
  restart: ['stop', 'start'],
  ...{ i: ['install'], ci: ['install'], add: ['install'] },
  install: ['install', 'prepublish', 'prepare'],
  pack: ['prepack', 'prepare'],
}

const otherPackages =
  /(?:^|\s)(?:-w|-ws|-r|--recursive|--workspaces?(?:=|\s|$)|workspaces?(?:\s|$)|foreach\b)/

/**
 * The commands of the scripts that a package manager's command runs, those around them included. Null where that can't be
 * told: it is no package.json, or the command speaks of other packages.
 */
export const scriptsRun = (packageJson: string, words: Words): string[] | null => {
  if (words.folders.length > 0 || otherPackages.test(words.text)) return null
  const scripts = scriptsOf(packageJson)
  if (scripts === null) return null
  const called = words.plain.flatMap((word) => [word, ...(runs[word] ?? [])])
  const isCalled = (name: string): boolean =>
    called.some(
      (word) => word === name || (/^[^*]+\*/.test(word) && name.startsWith(word.replace(/\*.*$/, ''))),
    )
  return Object.entries(scripts).flatMap(([name, command]) =>
    isCalled(name) || isCalled(name.replace(/^(?:pre|post)/, '')) ? [command] : [],
  )
}

const scriptsOf = (packageJson: string): Record<string, string> | null => {
  try {
    return packageSchema.parse(JSON.parse(packageJson)).scripts
  } catch {
    return null
  }
}
