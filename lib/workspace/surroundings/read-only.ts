import { chmod } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

const tries = 50

const isDenied = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && (error.code === 'EACCES' || error.code === 'EPERM')

/** Takes the right to write in a folder of ours; nobody else has any right in it. */
export const makeReadOnly = (folder: string): Promise<void> => chmod(folder, 0o500)

/**
 * Does one short thing in a folder that is kept read-only. Several workers may do so in the same folder: one that is
 * shut out by the end of another tries again.
 */
export const whileWritable = async <Value>(folder: string, work: () => Promise<Value>): Promise<Value> => {
  for (let left = tries; ; left--) {
    await chmod(folder, 0o700)
    try {
      return await work()
    } catch (error) {
      if (!isDenied(error) || left === 0) throw error
      await sleep(10)
    } finally {
      await makeReadOnly(folder)
    }
  }
}
