import { cloudPlatform } from '../cloud.ts'
import { sweep } from './sweep.ts'

const { platform } = cloudPlatform(process.env)

/** The schedule calls this. One session that can't be repaired is logged and keeps none of the others waiting. */
export const handler = async (): Promise<{ looked: number; faults: number }> => {
  const { looked, faults } = await sweep(platform)
  for (const { id, error } of faults) {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
    console.error({ message: 'a session could not be repaired', id, error: text })
  }
  return { looked, faults: faults.length }
}
