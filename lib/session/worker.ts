import { GatehouseError } from '../errors.ts'
import type { Actor, Statement } from '../journal/entry.ts'
import type { Fact } from '../journal/facts.ts'
import { limits } from '../limits.ts'
import type { Document } from './document.ts'
import type { Change, Runtime, SessionItem } from './item.ts'
import { keepsWork } from './retained.ts'
import { isTerminal } from './states.ts'

/** A worker as it names itself in each call: its launch and the epoch that its lease gave it. */
export type Lease = { worker_id: string; epoch: number }

const superseded = (item: SessionItem, why: string) =>
  new GatehouseError('superseded', `session ${item.id}: ${why}; stop`)

/** A worker acts only under its lease (DESIGN 3, invariant 5); anybody else is told to stop. */
export const requireLease = (item: SessionItem, { worker_id, epoch }: Lease): void => {
  const { lease, compute } = item.runtime
  if (lease.epoch !== epoch || lease.worker_id !== worker_id || compute?.id !== worker_id) {
    throw superseded(item, `epoch ${epoch} is not the current lease`)
  }
  if (isTerminal(item.document.state)) throw superseded(item, 'it has ended')
}

/**
 * Gives the lease to the worker that was launched last, and a new epoch with it; once, so that nobody who has found its
 * token takes the lease out of its hands. `claim` is a name that the worker gives its call: null for a repeat of it.
 */
export const takeLease = (item: SessionItem, workerId: string, claim: string, now: number): Change | null => {
  const { compute, lease } = item.runtime
  if (isTerminal(item.document.state)) throw superseded(item, 'it has ended')
  if (!compute || compute.id !== workerId) throw superseded(item, 'another worker was launched since')
  if (compute.status === 'stopped' || compute.status === 'stopping')
    throw superseded(item, 'this worker was told to stop')
  if (compute.status === 'live') {
    if (lease.worker_id === workerId && lease.claim === claim) return null
    throw superseded(item, 'its lease was taken already')
  }
  const epoch = lease.epoch + 1
  return {
    actor: { kind: 'worker', id: workerId },
    facts: [
      ...withdrawQuestion(item.document, 'another worker has taken over'),
      { type: 'lease_taken', data: { worker_id: workerId, epoch } },
    ],
    runtime: {
      lease: { epoch, worker_id: workerId, expires_at: new Date(now + limits.leaseMs).toISOString(), claim },
      compute: { ...compute, status: 'live' },
    },
  }
}

/** What a worker's call proves that names the receipt of its last batch: so far the journal holds everything. */
export const receipted = (
  { runtime: { receipt } }: SessionItem,
  named: string | null | undefined,
): Pick<Change, 'drained'> => (receipt && receipt.id === named ? { drained: receipt.sequence } : {})

/** Prolongs the lease. Throws `superseded` when it is not this worker's any more. */
export const renewLease = (
  item: SessionItem,
  lease: Lease,
  now: number,
  receipt: string | null = null,
): Change => {
  requireLease(item, lease)
  return {
    actor: { kind: 'worker', id: lease.worker_id },
    facts: [],
    ...receipted(item, receipt),
    runtime: { lease: { ...item.runtime.lease, expires_at: new Date(now + limits.leaseMs).toISOString() } },
  }
}

/**
 * What ends a worker's part: its token is good for nothing from this write on. A command that comes next launches
 * another worker.
 */
export const sentAway = ({ runtime: { compute, lease } }: SessionItem): Partial<Runtime> => ({
  compute: compute && { ...compute, status: 'stopping' },
  lease: { ...lease, worker_id: null, expires_at: null, claim: null },
})

/** Whether the session waits for a person or a rate limit, or rests: times at which nothing of it may run. */
const waitsForOthers = ({ document }: SessionItem): boolean =>
  document.gate !== null || document.step === 'RateLimit' || document.step === 'Rest'

/**
 * What a worker that asks for work is told. At a gate it is sent away, for nothing runs while a person is waited for;
 * that it was is written on the item, so that a command which comes a moment later launches another.
 */
export const nextCommand = (
  item: SessionItem,
  lease: Lease,
): { kind: 'command' } | { kind: 'wait' } | { kind: 'stop'; reason: string; change: Change } => {
  requireLease(item, lease)
  if (item.runtime.command) return { kind: 'command' }
  if (!waitsForOthers(item)) return { kind: 'wait' }
  return {
    kind: 'stop',
    reason: 'the session waits for something else',
    change: { actor: { kind: 'worker', id: lease.worker_id }, facts: [], runtime: sentAway(item) },
  }
}

/**
 * Whether a worker whose session has just ended may still save the work that it has in hand: only the one that held the
 * lease, only until the session is settled, and only where the session keeps it.
 */
export const mayRetain = ({ document, runtime }: SessionItem, lease: Lease): boolean => {
  const end = document.state === 'abandoned' ? 'cancelled' : document.failure_kind
  const current =
    runtime.lease.epoch === lease.epoch && runtime.lease.worker_id === lease.worker_id && !runtime.settled
  return end !== null && keepsWork(document, end) && current
}

/** Keeps the work that a worker saved on its way out. Throws `superseded` where it is not to be kept. */
export const retain = (
  item: SessionItem,
  lease: Lease,
  checkpoint: NonNullable<Document['checkpoint']>,
): Change => {
  if (!mayRetain(item, lease)) throw superseded(item, 'its work is not kept')
  return {
    actor: { kind: 'worker', id: lease.worker_id },
    facts: [{ type: 'workspace_retained', data: { checkpoint, reason: item.document.state } }],
  }
}

/** Puts an engine's question to people; null for a repeat. Throws `illegal_transition` while another one is pending. */
export const ask = (
  item: SessionItem,
  lease: Lease,
  asked: { request_id: string; prompt: string },
  now: number,
): Change | null => {
  requireLease(item, lease)
  const { question, step } = item.document
  if (question?.request_id === asked.request_id) return null
  if (question?.status === 'pending' || step !== 'Code')
    throw new GatehouseError('illegal_transition', 'no question can be asked now')
  const deadline_at = new Date(now + limits.questionMs).toISOString()
  return {
    actor: { kind: 'worker', id: lease.worker_id },
    facts: [{ type: 'user_input_requested', data: { ...asked, deadline_at } }],
  }
}

/** The fact that a question is withdrawn, because the engine that asked it is gone; none when nothing is pending. */
export const withdrawQuestion = ({ question }: Document, reason: string): Fact[] =>
  question?.status === 'pending'
    ? [{ type: 'user_input_withdrawn', data: { request_id: question.request_id, reason } }]
    : []

/** Lets a question expire whose time is over; null while it has time, or when it is no longer pending. */
export const expireQuestion = ({ document }: SessionItem, actor: Actor, now: number): Change | null => {
  const { question } = document
  if (question?.status !== 'pending' || now < Date.parse(question.deadline_at)) return null
  const { request_id, prompt, asked_at } = question
  const waited_secs = Math.round((now - Date.parse(asked_at)) / 1000)
  return { actor, facts: [{ type: 'user_input_expired', data: { request_id, prompt, waited_secs } }] }
}

/** A worker's batch: its name, the receipt that it gets, and that of the batch before. */
export type Batch = { id: string; facts: readonly Statement[]; fresh: string; receipt: string | null }
/** One with records; `stated` is the hash of what its worker stated. */
export type RecordBatch = Batch & { stated: string }

const judging = new Set(['check_started', 'check_completed', 'setup_started', 'setup_completed'])

/**
 * While an engine runs, it may have found its worker's token: what is told then says nothing of checks. Throws
 * `illegal_transition`.
 */
export const requireSpeaker = ({ document: { step } }: SessionItem, facts: readonly Statement[]): void => {
  const [told] = step === 'Code' ? facts.filter(({ type }) => judging.has(type)) : []
  if (told) throw new GatehouseError('illegal_transition', `no ${told.type} can come while the engine runs`)
}

/**
 * Appends a worker's events under a fresh receipt; a repeat of the last batch is recognised by its name and changes
 * nothing. `receipt` is that of the batch before.
 */
export const appendEvents = (item: SessionItem, lease: Lease, batch: Batch): Change | null => {
  requireLease(item, lease)
  if (item.runtime.last_batch_id === batch.id) return null
  requireSpeaker(item, batch.facts)
  const { drained = -1 } = receipted(item, batch.receipt)
  // While the journal can't be written, the item takes no more than one batch: it must keep room for a decision.
  const waiting = item.outbox.reduce(
    (bytes, { segment, line }) => (segment > drained ? bytes + line.length : bytes),
    0,
  )
  if (waiting > limits.journalBatch.bytes)
    throw new GatehouseError('unavailable', 'the journal can’t be written right now')
  const sequence = item.journal_head.sequence + batch.facts.length
  return {
    actor: { kind: 'worker', id: lease.worker_id },
    facts: batch.facts,
    drained,
    runtime: { last_batch_id: batch.id, receipt: { id: batch.fresh, sequence } },
  }
}

/**
 * Where a batch with records was written before; undefined for a new one, and for one that is no more among the last.
 * Throws `idempotency_mismatch` when another was written under its name; `stated` gives the hash of what is stated now.
 */
export const recordBatch = ({ runtime }: SessionItem, batchId: string, stated: () => string) => {
  const known = runtime.record_batches.find(({ id }) => id === batchId)
  if (known && known.stated !== stated())
    throw new GatehouseError('idempotency_mismatch', `batch ${batchId} was appended with other records`)
  return known
}

/** Appends a worker's batch with records, which is known not to be a repeat and can stand behind the item's head. */
export const appendRecords = (item: SessionItem, lease: Lease, batch: RecordBatch): Change => {
  requireLease(item, lease)
  const { id, stated, facts, fresh } = batch
  requireSpeaker(item, facts)
  const { sequence } = item.journal_head
  const before = item.runtime.record_batches.slice(1 - limits.recordBatches)
  return {
    actor: { kind: 'worker', id: lease.worker_id },
    facts,
    ...receipted(item, batch.receipt),
    runtime: {
      record_batches: [...before, { id, stated, first: sequence + 1, count: facts.length }],
      receipt: { id: fresh, sequence: sequence + facts.length },
    },
  }
}
