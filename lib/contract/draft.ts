import { limits } from '../limits.ts'
import type { RepositoryFiles } from './detector.ts'
import { detectors } from './draft-ecosystems.ts'
import { runnerDetectors } from './draft-runners.ts'
import { type Contract, contractSchema } from './schema.ts'

export type { RepositoryFiles } from './detector.ts'

export type Draft =
  | { contract: Contract /** The files that the checks were read from. */; sources: string[] }
  | { problem: { code: 'nothing_declared'; detail: string; looked_for: string[] } }

/**
 * A contract from what the repository itself declares to be its tests; no model, no guess. Every ecosystem
 * that declares some adds its check; a general task runner (make, just, task) speaks only when none does.
 */
export const draftContract = (files: RepositoryFiles): Draft => {
  const own = detectors.flatMap((detector) => detector.find(files) ?? [])
  const runner = runnerDetectors.flatMap((detector) => detector.find(files) ?? []).slice(0, 1)
  const found = own.length > 0 ? own : runner
  if (found.length === 0) {
    const looked_for = [...detectors, ...runnerDetectors].map((detector) => detector.looksFor)
    const detail = `The repository declares no checks. Looked for: ${looked_for.join('; ')}.`
    return { problem: { code: 'nothing_declared', detail, looked_for } }
  }
  const commands = found.flatMap((one) => one.commands).slice(0, limits.checks)
  const contract = contractSchema.parse({
    description: `What the repository declares: ${commands.join(', ')}.`,
    setup: found.flatMap((one) => one.setup),
    checks: commands.map((command) => ({
      name: command,
      command,
      timeout_secs: limits.checkTimeoutSecs.max,
    })),
  })
  return { contract, sources: [...new Set(found.flatMap((one) => one.sources))] }
}
