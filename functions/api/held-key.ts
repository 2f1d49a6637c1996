import { setTimeout as sleep } from 'node:timers/promises'
import { limits } from '../../lib/limits.ts'
import type { Claim } from '../../lib/store/idempotency.ts'
import type { Platform } from '../../lib/store/platform.ts'

/**
 * Holds a claimed Idempotency-Key for as long as its call runs, however long that is: a short lease, renewed again and
 * again, so that a call whose process died leaves its key to a repeat within seconds. `end` gives the claim as it is then.
 */
export const holdKey = (platform: Platform, team: string, key: string, claimed: Claim) => {
  const ended = new AbortController()
  const hold = async (): Promise<Claim> => {
    let claim = claimed
    while (!ended.signal.aborted) {
      await sleep(limits.idempotencyRenewMs, undefined, { signal: ended.signal, ref: false }).catch(() => {})
      if (ended.signal.aborted) break
      // A renewal that fails is followed by the next; the lease outlasts two.
      const renewed = await platform.idempotency.renew(team, key, claim).catch(() => claim)
      // In other hands: the call goes on, and its end touches nothing.
      if (renewed === null) break
      claim = renewed
    }
    return claim
  }
  const holding = hold()
  return {
    end: (): Promise<Claim> => {
      ended.abort()
      return holding
    },
  }
}
