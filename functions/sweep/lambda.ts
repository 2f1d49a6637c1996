import { cloudPlatform } from '../cloud.ts'
import { newMemory, type SweepLine } from './round.ts'
import { sweep } from './sweep.ts'

const { platform } = cloudPlatform(process.env)
const memory = newMemory()

/** What is left of the time limit when no more is begun, in milliseconds. */
const reserveMs = 60_000

const log = (line: SweepLine): void => console.info(line)

/** The schedule calls this. One session that can't be repaired is logged and keeps none of the others waiting. */
export const handler = async (
  _event: unknown,
  context: { getRemainingTimeInMillis: () => number },
): Promise<{ looked: number; faults: number }> => {
  const hasTime = () => context.getRemainingTimeInMillis() > reserveMs
  const { looked, faults } = await sweep(platform, { memory, log, hasTime })
  for (const { id, error } of faults) {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
    console.error({ message: 'the sweep could not repair', id, error: text })
  }
  return { looked, faults: faults.length }
}
