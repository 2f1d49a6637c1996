import type { Fact } from '../../lib/journal/facts.ts'
import { failTask } from '../../lib/session/advance.ts'
import type { Change } from '../../lib/session/item.ts'
import { withdrawQuestion } from '../../lib/session/worker.ts'
import { transition } from '../../lib/store/effects.ts'
import type { Platform } from '../../lib/store/platform.ts'

/**
 * Records that a worker's end was seen, with what else there is to tell of it. When it had a command in hand, the parked
 * step is told that its worker was lost, and the machine's Recover decides what follows. Harmless to repeat, and for a
 * worker of an earlier launch.
 */
export const computeStopped = async (
  platform: Platform,
  stopped: { team: string; id: string; worker_id: string; reason: string },
  told: readonly Fact[] = [],
): Promise<void> => {
  await transition(platform, stopped, (item): Change | null => {
    const { compute, command, answers, lease, replaced } = item.runtime
    const actor = { kind: 'system', id: 'compute' } as const
    const seen: Fact = {
      type: 'compute_stopped',
      data: { compute_id: stopped.worker_id, reason: stopped.reason },
    }
    if (replaced === stopped.worker_id) return { actor, facts: [seen, ...told], runtime: { replaced: null } }
    if (!compute || compute.id !== stopped.worker_id || compute.status === 'stopped') return null
    const lost = command ? failTask(item, 'WorkerLost', stopped.reason) : []
    return {
      actor,
      facts: [...withdrawQuestion(item.document, 'its worker is gone'), seen, ...told],
      runtime: {
        compute: { ...compute, status: 'stopped', stopped_at: new Date(platform.clock()).toISOString() },
        lease: { ...lease, worker_id: null, expires_at: null },
        ...(lost.length > 0 ? { task: null, answers: [...answers, ...lost] } : {}),
      },
    }
  })
}
