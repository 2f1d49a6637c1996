import { readFile } from 'node:fs/promises'
import { limits } from '../../limits.ts'
import type { ProcessResult } from '../../process/run.ts'
import { outputDigest, type RunPlace } from './output-digest.ts'
import { isOwnModule } from './own-module.ts'
import { suspicionIn } from './suspicion.ts'

/** What a run's output says besides the verdict: the line that raises a suspicion, and a digest where it was read whole. */
export type Told = { suspicion: string | null; digest: string | null }

/** Reads a run's output file, or what is kept of an output that is too long to be searched. */
export const toldBy = async (process: ProcessResult, outputFile: string, place: RunPlace): Promise<Told> => {
  const whole =
    process.bytes > 0 && process.bytes <= limits.comparedOutput
      ? await readFile(outputFile, 'utf8').catch(() => null)
      : null
  return {
    suspicion: suspicionIn(whole ?? `${process.head}\n${process.tail}`, isOwnModule(place.tree)),
    digest: whole === null ? null : outputDigest(whole, place),
  }
}
