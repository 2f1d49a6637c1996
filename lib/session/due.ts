import { limits } from '../limits.ts'
import type { Document } from './document.ts'
import type { Runtime, SessionItem } from './item.ts'
import { steps } from './states.ts'

/**
 * How long after the last look something half-done, work, a queue and a gate are looked at again; and how long after it
 * was sealed a session whose segments still stand, which is not for so long among those that the sweep holds for live.
 */
const lookAfterMs = {
  ...{ halfDone: 30_000, work: 60_000, queue: 300_000, gate: 3_600_000 },
  sealed: 2 * 3_600_000,
} as const

/** Times at which something about a live session expires. */
const deadlines = ({ gate, question, rate_limit: limit }: Document): string[] => [
  ...(gate ? [gate.deadline_at] : []),
  ...(question?.status === 'pending' ? [question.deadline_at] : []),
  ...(limit ? [limit.reset_at] : []),
]

const isSlow = (document: Document) => document.gate !== null || steps[document.step].kind === 'wait'

/** When the sweep comes to the segments that a seal covers. */
const clearableAt = ({ sealed }: Runtime): string[] =>
  sealed === null || sealed.cleared
    ? []
    : [new Date(Date.parse(sealed.sealed_at) + lookAfterMs.sealed).toISOString()]

/** When a session was done with, as retention counts: one that was imported is as old as its import. */
export const finishedAt = (document: Pick<Document, 'updated_at'>, imported: Runtime['imported']): string =>
  imported && imported.at > document.updated_at ? imported.at : document.updated_at

/** When a finished session may be removed; one with retained work stays. */
const removableAt = ({ document, runtime }: SessionItem): string[] => {
  const finished = Date.parse(finishedAt(document, runtime.imported))
  return document.retained_work ? [] : [new Date(finished + limits.retention.days * 86_400_000).toISOString()]
}

/** Whether a session is over and its journal is still to be sealed. */
export const isUnsealed = ({ settled, sealed }: Runtime): boolean => settled && sealed === null

/**
 * When the sweep has to look at a session next; null once nothing about it can be left half-done. Counted from the last
 * look and not from the last write: a worker that keeps its lease alive must not keep the sweep away.
 */
export const dueAt = (item: SessionItem): string | null => {
  const { document, runtime, outbox } = item
  const after = (ms: number) => new Date(Date.parse(runtime.looked_at) + ms).toISOString()
  // A worker whose session is settled and whose end was not recorded is a leftover too.
  const outlives = runtime.settled && runtime.compute !== null && runtime.compute.status !== 'stopped'
  const isHalfDone = outbox.length > 0 || runtime.answers.length > 0 || runtime.start_pending || outlives
  const due = isHalfDone || isUnsealed(runtime) ? [after(lookAfterMs.halfDone)] : []
  if (runtime.settled) due.push(...clearableAt(runtime), ...removableAt(item))
  else if (!runtime.resting) {
    due.push(...deadlines(document))
    if (isSlow(document)) due.push(after(lookAfterMs.gate))
    else if (document.step === 'Admit' && runtime.queued_at !== null) due.push(after(lookAfterMs.queue))
    else due.push(after(lookAfterMs.work))
  }
  return due.toSorted()[0] ?? null
}
