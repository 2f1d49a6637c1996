import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { type FieldError, GatehouseError, isError } from '../errors.ts'
import { fieldErrors } from '../field-errors.ts'
import { agentFactSchema } from '../journal/agent/records.ts'
import type { AgentState } from '../journal/agent/state.ts'
import { statedProblems } from '../journal/agent/stated.ts'
import {
  canonical,
  type DataRef,
  type Entry,
  fromLine,
  type Statement,
  sha256,
  wellFormed,
} from '../journal/entry.ts'
import { eventFactSchema } from '../journal/event-facts.ts'
import { isAgentFact } from '../journal/facts.ts'
import { limits } from '../limits.ts'
import { besideData, type Given, place, setAside } from '../session/agent-append.ts'
import type { Appended } from '../session/agent-protocol.ts'
import type { Change, SessionItem } from '../session/item.ts'
import type { StatedFact } from '../session/protocol.ts'
import {
  appendEvents,
  appendRecords,
  type Lease,
  recordBatch,
  requireLease,
  type Batch as WorkerBatch,
} from '../session/worker.ts'
import { carryOut, persist } from './effects.ts'
import { objectKey } from './keys.ts'
import type { Platform } from './platform.ts'

type Id = { team: string; id: string }
/** A batch as a worker sends it; no `receipt` at all where each batch is to be noted with a write of its own. */
type Batch = { id: string; facts: readonly StatedFact[]; receipt: string | null | undefined }
type Data = Entry['data']
/** A batch with its data in place, and which of it was uploaded. */
type ReadBatch = {
  named: Omit<WorkerBatch, 'facts'>
  stated: () => string
  given: readonly Given[]
  isUploaded: readonly boolean[]
}

/** What a batch may add to the session item, which holds it until it has reached the journal. */
const room = 2 * limits.journalBatch.bytes

/** What tells a repeat from another batch under the same name. */
const statedIn = (facts: readonly StatedFact[]): string => sha256(canonical(wellFormed(facts)))

const factSchema = z.discriminatedUnion('type', [...agentFactSchema.options, ...eventFactSchema.options])

const invalid = (errors: FieldError[]) =>
  new GatehouseError('invalid_request', 'the request does not validate', { errors })

const isCanonical = (data: Data, ref: DataRef): boolean => {
  try {
    return sha256(canonical(data)) === `sha256:${ref.sha256}`
  } catch {
    return false
  }
}

/** The data that a worker has uploaded. Throws `invalid_request` where it is not what the reference says. */
const uploaded = async ({ blobs, payloads }: Platform, id: Id, ref: DataRef, path: string): Promise<Data> => {
  const refuse = (message: string) => invalid([{ path, message }])
  if (ref.bytes > limits.entryData) throw refuse(`may be at most ${limits.entryData} bytes`)
  const size = await blobs.size(objectKey.artifact(id.team, id.id, ref.artifact))
  if (size !== ref.bytes) throw refuse(size === null ? 'is not uploaded' : `has ${size} bytes`)
  try {
    const data = await payloads.load(id, ref)
    if (isCanonical(data, ref)) return data
  } catch (error) {
    if (
      !isError(error, 'journal_damaged') &&
      !(error instanceof SyntaxError) &&
      !(error instanceof z.ZodError)
    )
      throw error
  }
  throw refuse('is not the canonical JSON object of this hash')
}

/** The facts of a batch as what they are. Throws `invalid_request` with every place that is not right. */
const read = async (platform: Platform, id: Id, facts: readonly StatedFact[]): Promise<Given[]> => {
  const errors: FieldError[] = []
  const given: Given[] = []
  for (const [index, { type, data: inline, data_ref, ...context }] of facts.entries()) {
    const at = ['facts', index]
    const data = data_ref ? await uploaded(platform, id, data_ref, [...at, 'data_ref'].join('.')) : inline
    const parsed = factSchema.safeParse({ type, data })
    const stated = statedProblems(type, data)
    if (stated.length > 0)
      errors.push(
        ...stated.map(({ path, message }) => ({ path: [...at, 'data', ...path].join('.'), message })),
      )
    else if (!parsed.success) errors.push(...fieldErrors(parsed.error.issues, at))
    else if (context.branch !== undefined && !isAgentFact(parsed.data))
      errors.push({ path: [...at, 'branch'].join('.'), message: 'an event belongs to no branch' })
    else given.push({ fact: parsed.data, context })
  }
  if (errors.length > 0) throw invalid(errors)
  return given
}

/** Which data of a batch is kept beside the journal, and what the lines take then. Throws `payload_too_large`. Pure. */
const planned = ({ given, isUploaded }: ReadBatch): { isAside: boolean[]; bytes: number } => {
  const sizes = given.map(({ fact }, at) => (isUploaded[at] ? 0 : Buffer.byteLength(canonical(fact.data))))
  const beside = besideData(given.map(({ context }) => context))
  const aside = setAside(sizes, beside)
  const bytes = sizes.reduce((sum, size, at) => sum + (aside.has(at) ? 0 : size), beside)
  if (bytes > room)
    throw new GatehouseError(
      'payload_too_large',
      `a batch may add ${room} bytes to the session; this one adds ${bytes}`,
    )
  return { isAside: sizes.map((_, at) => isUploaded[at] === true || aside.has(at)), bytes }
}

/** Keeps data beside the journal; harmless to repeat. Null for what stays in its entry. */
const keepAside = (
  { payloads }: Platform,
  id: Id,
  given: readonly Given[],
  isAside: readonly boolean[],
): Promise<(DataRef | null)[]> =>
  Promise.all(given.map(({ fact }, at) => (isAside[at] ? payloads.store(id, fact.data) : null)))

const referring = (statements: readonly Statement[], refs: readonly (DataRef | null)[]): Statement[] =>
  statements.map((statement, at) => {
    const data_ref = refs[at]
    return data_ref ? { ...statement, context: { ...statement.context, data_ref } } : statement
  })

/** The write with room made for it: where the item holds too much already, that reaches the journal first. */
const fitted = async (
  platform: Platform,
  item: SessionItem,
  change: Change,
  bytes: number,
): Promise<Change> => {
  const drained = change.drained ?? -1
  const waiting = item.outbox.filter(({ segment }) => segment > drained)
  if (waiting.reduce((sum, { line }) => sum + Buffer.byteLength(line), bytes) <= room) return change
  await persist(platform, item)
  return { ...change, drained: item.journal_head.sequence }
}

/** Appends a batch with records: validated against the very state that it follows, again after each lost race. */
const appendWithRecords = async (
  platform: Platform,
  id: Id,
  lease: Lease,
  batch: ReadBatch,
): Promise<SessionItem> => {
  const { isAside, bytes } = planned(batch)
  let refs: (DataRef | null)[] | null = null
  const reached: { agent: AgentState | null; since: number } = { agent: null, since: -1 }
  const written = await platform.sessions.update(id, async (item) => {
    reached.agent = null
    requireLease(item, lease)
    if (recordBatch(item, batch.named.id, batch.stated)) return null
    const before = await platform.heads.at(item)
    const time = new Date(platform.clock()).toISOString()
    const { statements, agent } = place(before.agent, batch.given, time)
    reached.agent = agent
    reached.since = item.journal_head.sequence
    refs ??= await keepAside(platform, id, batch.given, isAside)
    const facts = referring(statements, refs)
    const change = appendRecords(item, lease, { ...batch.named, stated: batch.stated(), facts })
    return fitted(platform, item, change, bytes)
  })
  if (reached.agent) await platform.heads.written(written, reached.agent, reached.since)
  return written
}

const requireRoom = (given: readonly Given[]): void => {
  const bytes = given.reduce((sum, { fact }) => sum + Buffer.byteLength(JSON.stringify(fact)), 0)
  if (bytes > room) throw invalid([{ path: 'facts', message: `have to be at most ${room} bytes of JSON` }])
}

/** Appends a batch; one of events alone needs no look at the agent's state. */
const appendNew = async (
  platform: Platform,
  id: Id,
  lease: Lease,
  { id: batchId, facts: stated, receipt = null }: Batch,
): Promise<SessionItem> => {
  const batch: ReadBatch = {
    named: { id: batchId, fresh: randomUUID(), receipt },
    stated: () => statedIn(stated),
    given: await read(platform, id, stated),
    isUploaded: stated.map(({ data_ref }) => data_ref !== undefined),
  }
  if (batch.given.some(({ fact }) => isAgentFact(fact))) return appendWithRecords(platform, id, lease, batch)
  requireRoom(batch.given)
  const facts = batch.given.map(({ fact, context }): Statement => ({ ...fact, context }))
  return platform.sessions.update(id, (item) => appendEvents(item, lease, { ...batch.named, facts }))
}

/** Appends a batch unless it was before. Whatever is wrong with it, who has lost the lease is told that. */
const appendOnce = async (platform: Platform, id: Id, lease: Lease, batch: Batch): Promise<SessionItem> => {
  try {
    return await appendNew(platform, id, lease, batch)
  } catch (error) {
    if (!isError(error, 'invalid_request', 'payload_too_large')) throw error
    const item = await platform.sessions.require(id)
    requireLease(item, lease)
    if (recordBatch(item, batch.id, () => statedIn(batch.facts))) return item
    throw error
  }
}

/** Where the records of a batch are; those that the item no longer holds are in the journal. */
const recordsOf = async (
  { journals }: Platform,
  item: SessionItem,
  { first, count }: { first: number; count: number },
): Promise<Appended['records']> => {
  const held = item.outbox.map(({ line }) => fromLine(line)).filter(({ sequence }) => sequence >= first)
  const entries = held[0]?.sequence === first ? held : await journals.after(item, first - 1, count)
  return entries
    .slice(0, count)
    .filter(({ kind }) => kind === 'record')
    .map(({ sequence, id }) => ({ sequence, id }))
}

/**
 * Appends a worker's batch, all of it or nothing, and answers once it is durable; a repeat is answered as the first was.
 * Throws `superseded` without the lease, `record_refused` for a record that can't follow what the journal holds, and
 * `invalid_request` or `payload_too_large` for what could never stand in one.
 */
export const appendBatch = async (
  platform: Platform,
  id: Id,
  lease: Lease,
  batch: Batch,
): Promise<Appended> => {
  const item = await appendOnce(platform, id, lease, batch)
  // The next call of a worker that takes receipts notes it.
  await (batch.receipt === undefined ? carryOut(platform, item) : persist(platform, item))
  const known = recordBatch(item, batch.id, () => statedIn(batch.facts))
  return {
    sequence: known ? known.first + known.count - 1 : item.journal_head.sequence,
    records: known ? await recordsOf(platform, item, known) : [],
    receipt: item.runtime.receipt?.id ?? null,
  }
}
