import { setTimeout as sleep } from 'node:timers/promises'

/** Resolves to true once a promise has settled, or to false after a time. */
const settlesWithin = async (ms: number, promise: Promise<unknown>): Promise<boolean> => {
  const timer = new AbortController()
  const settled = promise.then(
    () => true,
    () => true,
  )
  const late = sleep(ms, false, { signal: timer.signal }).catch(() => false)
  try {
    return await Promise.race([settled, late])
  } finally {
    timer.abort()
  }
}

/**
 * Runs what is asked for under one key one after another, in the order of asking, within this process; other keys are
 * not waited for. Resolves to null, with nothing run, when its turn does not come within `ms`.
 */
export const createTurns = () => {
  const last = new Map<string, Promise<unknown>>()
  return async <Result>(
    key: string,
    ms: number,
    run: () => Promise<Result>,
  ): Promise<{ result: Result } | null> => {
    const before = last.get(key)
    const done = Promise.withResolvers<void>()
    // Who gives up does not let those behind it past the one that still runs.
    const all = Promise.all([before, done.promise])
    last.set(key, all)
    void all.then(() => {
      if (last.get(key) === all) last.delete(key)
    })
    try {
      if (before && !(await settlesWithin(ms, before))) return null
      return { result: await run() }
    } finally {
      done.resolve()
    }
  }
}
