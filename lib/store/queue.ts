import { advance } from '../session/advance.ts'
import { isTerminal } from '../session/states.ts'
import { transition } from './effects.ts'
import type { Platform } from './platform.ts'

const admit = (platform: Platform, team: string, id: string) =>
  transition(platform, { team, id }, (item) =>
    item.document.step === 'Admit' && !isTerminal(item.document.state)
      ? advance(item, { trigger: 'admitted', by: 'system', actor: { kind: 'system', id: 'Admit' }, note: '' })
      : null,
  )

/**
 * Gives free slots to the sessions that wait, first in, first out. A crash in the middle leaves a session that holds a
 * slot and still stands in the queue; the next call finds it there and goes on.
 */
export const promote = async (platform: Platform, team: string): Promise<void> => {
  const { admission, policy } = platform
  for (;;) {
    const waiting = await admission.first(team)
    if (!waiting) return
    const item = await platform.sessions.get({ team, id: waiting.session_id })
    if (!item || isTerminal(item.document.state)) {
      await admission.leave(team, waiting)
      continue
    }
    if (!(await admission.acquire(team, waiting.session_id, policy.concurrency))) return
    const { document } = await admit(platform, team, waiting.session_id)
    // It was cancelled and gave its slot back between our look and our claim.
    if (isTerminal(document.state)) await admission.release(team, waiting.session_id)
    await admission.leave(team, waiting)
  }
}

/** Asks for a slot: at once when one is free and nobody waits, else by joining the queue. */
export const askForSlot = async (
  platform: Platform,
  team: string,
  id: string,
  since: string,
): Promise<void> => {
  const { admission, policy } = platform
  if (!(await admission.first(team)) && (await admission.acquire(team, id, policy.concurrency))) {
    const { document } = await admit(platform, team, id)
    if (isTerminal(document.state)) await admission.release(team, id)
    return
  }
  await admission.wait(team, since, id)
  await promote(platform, team)
}

/** Gives a session's slot back and lets the next one in. */
export const giveBackSlot = async (platform: Platform, team: string, id: string): Promise<void> => {
  await platform.admission.release(team, id)
  await promote(platform, team)
}
