import { advance } from '../session/advance.ts'
import type { SessionItem } from '../session/item.ts'
import { isTerminal, steps } from '../session/states.ts'
import { transition } from './effects.ts'
import type { Platform } from './platform.ts'

const isWaiting = ({ document }: SessionItem): boolean =>
  document.step === 'Admit' && !isTerminal(document.state)

/** Whether nothing runs for the session: it is over, stopped, at a gate, or waits for a rate limit to lift. */
const isIdle = ({ document, runtime }: SessionItem): boolean => {
  const { kind } = steps[document.step]
  return runtime.settled || runtime.resting || kind === 'gate' || kind === 'wait'
}
const isAtWork = (item: SessionItem): boolean => !isTerminal(item.document.state) && !isIdle(item)

const admit = (platform: Platform, team: string, id: string) =>
  transition(platform, { team, id }, (item) =>
    isWaiting(item)
      ? advance(item, { trigger: 'admitted', by: 'system', actor: { kind: 'system', id: 'Admit' }, note: '' })
      : null,
  )

/** Gives back the slots that a crash left with idle sessions; whether there were any. */
const reclaim = async (platform: Platform, team: string): Promise<boolean> => {
  let reclaimed = false
  for (const { session_id: id } of await platform.admission.slots(team)) {
    const item = await platform.sessions.get({ team, id })
    if (!item || !isIdle(item)) continue
    await platform.admission.release(team, id)
    reclaimed = true
  }
  return reclaimed
}

/**
 * Gives free slots to the sessions that wait, first in, first out. A crash in the middle leaves a session that holds a
 * slot and still stands in the queue; the next call finds it there and goes on.
 */
export const promote = async (platform: Platform, team: string): Promise<void> => {
  const { admission, policy } = platform
  for (;;) {
    const waiting = await admission.first(team)
    if (!waiting) return
    const id = waiting.session_id
    const item = await platform.sessions.get({ team, id })
    if (!item || !isWaiting(item)) {
      await admission.leave(team, waiting)
      continue
    }
    if (!(await admission.acquire(team, id, policy.concurrency))) {
      if (await reclaim(platform, team)) continue
      return
    }
    // Between our look and our claim it may have been cancelled, or admitted by another and come to a gate since.
    if (!isAtWork(await admit(platform, team, id))) await admission.release(team, id)
    await admission.leave(team, waiting)
  }
}

/**
 * Asks for a slot by joining the queue at the time of the first asking. All go through the queue, also when slots are
 * free: nobody passes those who came before, and whoever promotes next finds an asking that a crash cut short.
 */
export const askForSlot = async (
  platform: Platform,
  team: string,
  id: string,
  since: string,
): Promise<void> => {
  await platform.admission.wait(team, { since, session_id: id })
  // Its cancel may have left the queue before it was in it, and a repeat may come when it has long been admitted.
  const item = await platform.sessions.get({ team, id })
  if (!item || !isWaiting(item)) await platform.admission.leave(team, { since, session_id: id })
  await promote(platform, team)
}

/**
 * Gives a session's slot back, takes the session out of the queue when it asked for a slot (`queuedAt`), and lets the
 * next one in.
 */
export const giveBackSlot = async (
  platform: Platform,
  team: string,
  id: string,
  queuedAt: string | null = null,
): Promise<void> => {
  if (queuedAt !== null) await platform.admission.leave(team, { since: queuedAt, session_id: id })
  await platform.admission.release(team, id)
  await promote(platform, team)
}

/**
 * Keeps the slot of a session whose worker is alive. One whose lease lapsed while it worked takes a slot again, above
 * the limit if need be, so that the slots show what really runs.
 */
export const renewSlot = async (platform: Platform, team: string, id: string): Promise<void> => {
  if (!(await platform.admission.take(team, id))) return
  // It may have given its slot back before we took it.
  const item = await platform.sessions.get({ team, id })
  if (!item || !isAtWork(item)) await giveBackSlot(platform, team, id)
}
