import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'

const busy = 5
const isBusy = (error: unknown): boolean =>
  error instanceof Error && 'errcode' in error && error.errcode === busy

const acquire = (file: string): DatabaseSync | null => {
  const database = new DatabaseSync(file, { timeout: 0 })
  try {
    database.exec('BEGIN EXCLUSIVE')
    return database
  } catch (error) {
    database.close()
    if (isBusy(error)) return null
    throw error
  }
}

/** Thrown when a lock stayed taken for as long as its caller could wait. */
export class LockTimeout extends Error {
  constructor(file: string) {
    super(`${file} stayed locked by another process`)
    this.name = 'LockTimeout'
  }
}

/**
 * Runs `work` while no other process or call holds `file`. The kernel holds the lock, so it ends with its holder
 * however that dies. Throws LockTimeout after `waitMs`, and the signal's reason on abort.
 */
export const withLock = async <Result>(
  file: string,
  options: { waitMs: number; signal?: AbortSignal | undefined },
  work: () => Promise<Result>,
): Promise<Result> => {
  const deadline = Date.now() + options.waitMs
  let held = acquire(file)
  for (let pause = 5; held === null; pause = Math.min(pause * 2, 200)) {
    options.signal?.throwIfAborted()
    if (Date.now() >= deadline) throw new LockTimeout(file)
    await sleep(pause, undefined, options.signal === undefined ? {} : { signal: options.signal })
    held = acquire(file)
  }
  try {
    return await work()
  } finally {
    held.close()
  }
}
