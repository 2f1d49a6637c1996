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
 * not waited for. What runs for longer than `turnMs` is waited for no more: it may hang. Resolves to null, with nothing
 * run, when its turn does not come within `ms`.
 */
export const createTurns = (turnMs: number) => {
  const last = new Map<string, Promise<unknown>>()
  return async <Result>(
    key: string,
    ms: number,
    run: () => Promise<Result>,
  ): Promise<{ result: Result } | null> => {
    const before = last.get(key)
    const over = Promise.withResolvers<void>()
    let timer: NodeJS.Timeout | undefined
    // Who gives up does not let those behind it past the one that still runs.
    const all = Promise.all([before, over.promise])
    last.set(key, all)
    void all.then(() => {
      if (last.get(key) === all) last.delete(key)
    })
    try {
      if (before && !(await settlesWithin(ms, before))) return null
      timer = setTimeout(over.resolve, turnMs)
      return { result: await run() }
    } finally {
      clearTimeout(timer)
      over.resolve()
    }
  }
}
