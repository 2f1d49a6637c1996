import type { Due } from '../../lib/store/sessions.ts'
import type { Round } from './round.ts'

/** How long a session that can't be repaired is put off: the first time, and at most. */
const delayMs = { first: 60_000, most: 3_600_000 } as const

/** A session that did not come up again for this long after its time is gone. */
const forgottenAfterMs = 2 * delayMs.most

/** The time that a session is put off after so many failures in a row, in milliseconds. */
export const delayAfter = (times: number): number =>
  Math.min(delayMs.most, delayMs.first * 2 ** Math.min(times - 1, 20))

/**
 * Puts off a session whose repair failed, longer each time it fails again. On its row too, so that it stands in no other
 * process's way; and here, since a worker that still writes to it would bring its time back.
 */
export const putOff = async ({ platform, memory, now }: Round, row: Due): Promise<void> => {
  const times = (memory.failing.get(row.id)?.times ?? 0) + 1
  const until = now + delayAfter(times)
  for (const [id, failed] of memory.failing)
    if (now - failed.until > forgottenAfterMs) memory.failing.delete(id)
  memory.failing.set(row.id, { times, until })
  await platform.sessions.postpone(row, until)
}

export const succeeded = ({ memory }: Round, { id }: Due): void => {
  memory.failing.delete(id)
}

/** Whether a session failed and its time has not come again. */
export const isLeftAlone = ({ memory, now }: Round, { id }: Due): boolean =>
  now < (memory.failing.get(id)?.until ?? 0)
