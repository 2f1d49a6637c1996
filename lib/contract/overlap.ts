import { oneLine } from '../text/visible.ts'
import { executedBy } from './inputs/executed.ts'
import type { ReadFile } from './inputs/reached.ts'
import type { Contract } from './schema.ts'

/** A check and the changed paths that its command executes or reads its instructions from. */
export type Overlap = { check: string; paths: string[] }

/**
 * What a change touches of its own contract: for each check the paths that it executes (spec/coder-session.md 10), which
 * are shown to the reviewer and block nothing, and of them all those that tell tools what to do. `read` gives files as the
 * base has them.
 */
export const contractOverlap = async (
  contract: Contract,
  changedPaths: readonly string[],
  read: ReadFile,
): Promise<{ overlap: Overlap[]; instructions: string[] }> => {
  const overlap: Overlap[] = []
  const instructions = new Set<string>()
  for (const { name, command } of [...setupOf(contract), ...contract.checks]) {
    const partOf = await executedBy(command, read)
    const parts = changedPaths.map((path) => ({ path, part: partOf(path) }))
    const paths = parts.filter(({ part }) => part !== null).map(({ path }) => path)
    if (paths.length > 0) overlap.push({ check: name, paths })
    for (const { path, part } of parts) if (part === 'instructions') instructions.add(path)
  }
  return { overlap, instructions: [...instructions] }
}

/** Setup runs before each check, in the same tree. */
const setupOf = ({ setup }: Contract) =>
  setup.length === 0 ? [] : [{ name: 'setup', command: setup.join('\n') }]

/** The sentence that every surface shows for an overlap, or null when there is none. */
export const overlapDisclosure = (overlap: readonly Overlap[]): string | null => {
  if (overlap.length === 0) return null
  const checks = overlap.map(({ check, paths }) => `"${oneLine(check)}" (${named(paths)})`).join(', ')
  return (
    `This change touches files that its own contract executes: ${checks}. ` +
    'Read those files before you rely on the checks.'
  )
}

const shown = 3

/** The first few of some paths, and how many more there are. */
export const named = (paths: readonly string[]): string => {
  const rest = paths.length - shown
  return paths.slice(0, shown).join(', ') + (rest > 0 ? ` and ${rest} more` : '')
}
