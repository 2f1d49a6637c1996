/** A task's rule about trying again, as the interpreter reads it. */
export interface Retrier {
  ErrorEquals: string[]
  IntervalSeconds?: number
  MaxAttempts?: number
  BackoffRate?: number
}

/** What is left of retriers that were used so often: fewer attempts, after the longer intervals that are next. */
export function remaining<T extends Retrier>(retriers: readonly T[], used: readonly number[]): T[] {
  return retriers.map((retrier, index) => {
    const times = used[index] ?? 0
    const { MaxAttempts = 3, IntervalSeconds = 1, BackoffRate = 2 } = retrier
    return times === 0
      ? retrier
      : {
          ...retrier,
          MaxAttempts: MaxAttempts - times,
          IntervalSeconds: IntervalSeconds * BackoffRate ** times,
        }
  })
}
