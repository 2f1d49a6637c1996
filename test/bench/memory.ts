import { join } from 'node:path'
import { execa } from 'execa'
import { z } from 'zod'
import type { Mix } from './history.ts'
import { figure } from './measure.ts'

const entries = 1_000_000
const megabyte = 1024 * 1024
const script = join(import.meta.dirname, 'fold-alone.ts')
const usedSchema = z.strictObject({ state: z.number(), peak: z.number() })

/** Folds a journal in a process of its own, that nothing else takes room in. */
const foldAlone = async (mix: Mix, length: number) => {
  // A small heap makes the collector keep up, or what it has not yet taken away would be counted too.
  const options = ['--expose-gc', '--max-semi-space-size=8', script, mix, String(length)]
  const { stdout } = await execa(process.execPath, options)
  return usedSchema.parse(JSON.parse(stdout))
}

/** What a fold keeps after a million entries, over what the process had before the first. */
export const memory = async (): Promise<void> => {
  const { state, peak } = await foldAlone('realistic', entries)
  const [kept, most] = [state, peak].map((bytes) => Math.round(bytes / megabyte))
  console.log(
    figure(`the state of ${entries} entries`, `${kept} MB`, { text: '< 300 MB', isMet: Number(kept) < 300 }),
  )
  console.log(figure('the process at its largest, program and all', `${most} MB`))
}
