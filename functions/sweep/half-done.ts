import { fromLines } from '../../lib/journal/entry.ts'
import type { SessionItem } from '../../lib/session/item.ts'
import { carryOut, transition } from '../../lib/store/effects.ts'
import { objectKey } from '../../lib/store/keys.ts'
import type { Platform } from '../../lib/store/platform.ts'
import { actor, patienceMs, type Repair, type Round, repaired } from './round.ts'

const isHalfDone = ({ outbox, runtime }: SessionItem): boolean =>
  outbox.length > 0 || runtime.answers.length > 0 || runtime.start_pending

/** When the oldest of what is still to be done was decided; what has no entry left in the outbox is older than any. */
const decidedAt = ({ outbox }: SessionItem): number => {
  const [oldest] = fromLines(outbox[0]?.line ?? '')
  return oldest ? Date.parse(oldest.time) : 0
}

const described = ({ outbox, runtime }: SessionItem): { what: Repair; detail: string } => {
  const { answers, start_pending, attempt } = runtime
  const parts = [
    ...(start_pending ? [`the start of execution ${attempt}`] : []),
    ...(answers.length > 0 ? [`${answers.length} answers to the machine`] : []),
    ...(outbox.length > 0 ? [`${outbox.length} journal entries`] : []),
  ]
  const what = start_pending ? 'start' : answers.length > 0 ? 'answer' : 'outbox'
  return { what, detail: `carried out what had been decided and not done: ${parts.join(', ')}` }
}

/** Whether all is done but the note of it, which a worker gives with its next call and a worker that is gone never does. */
const owesNote = async (
  { blobs }: Platform,
  { team, id, outbox, runtime }: SessionItem,
): Promise<boolean> => {
  const last = outbox.at(-1)
  if (!last || runtime.answers.length > 0 || runtime.start_pending) return false
  return (
    last.sequence === runtime.receipt?.sequence && blobs.exists(objectKey.segment(team, id, last.segment))
  )
}

/**
 * Carries out what a write decided and its writer did not come to: journal entries, the execution's start, answers.
 * What was decided a moment ago is carried out too, and not told of: its writer is most likely still at it.
 */
export const finishHalfDone = async ({ platform, now }: Round, found: SessionItem): Promise<SessionItem> => {
  if (!isHalfDone(found)) return found
  const isNoteOnly = await owesNote(platform, found)
  const item = await carryOut(platform, found)
  if (isNoteOnly || now - decidedAt(found) < patienceMs / 2) return item
  const { what, detail } = described(found)
  return transition(platform, found, () => ({ actor, facts: [repaired(what, detail)], looked: true }))
}
