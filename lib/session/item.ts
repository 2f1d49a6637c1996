import { z } from 'zod'
import {
  type Actor,
  chain,
  emptyHead,
  type Head,
  headSchema,
  type Statement,
  wellFormed,
} from '../journal/entry.ts'
import { type Fact, isAgentFact, isLifecycle } from '../journal/facts.ts'
import { foldRecord } from '../journal/fold.ts'
import { limits } from '../limits.ts'
import { type Document, documentSchema } from './document.ts'
import { stepSchema } from './states.ts'

const time = z.iso.datetime({ precision: 3 })

/**
 * What the machine is told when a step ends; its JSON is the step's output in the console. `wait` is how many seconds
 * the next step may wait, where that is a wait. `at` is the sequence of the session's journal at which the machine was
 * sent on: it names what it enters next with that, which puts its calls into an order that no clock has a part in. `away`
 * counts the steps in a row that had nothing to do.
 */
export const stepOutputSchema = z.strictObject({
  next: z.string(),
  note: z.string(),
  wait: z.number().int().min(0).default(1),
  at: z.number().int().min(0).default(0),
  away: z.number().int().min(0).default(0),
})
export type StepOutput = z.infer<typeof stepOutputSchema>

/** The last sequence of the write that an answer belongs to; null until that write is made. */
const sequence = z.number().int().nullable()

/** An answer that a parked step still has to get; it stays here until Step Functions has taken it. */
export const taskAnswerSchema = z.discriminatedUnion('ok', [
  z.strictObject({ ok: z.literal(true), sequence, token: z.string(), output: stepOutputSchema }),
  z.strictObject({ ok: z.literal(false), sequence, token: z.string(), error: z.string(), cause: z.string() }),
])
export type TaskAnswer = z.infer<typeof taskAnswerSchema>

/**
 * A journal line that was decided and is still to reach S3. `segment` is the sequence with which the segment begins that
 * it belongs to: fixed by the write that decided it, so whoever drains it, knowing however much, makes the same segments.
 */
export const outboxLineSchema = z.strictObject({
  sequence: z.number().int(),
  segment: z.number().int(),
  line: z.string(),
})
export type OutboxLine = z.infer<typeof outboxLineSchema>

/** Lines that were stored before segments were fixed were drained as one, from the first. */
const outboxSchema = z
  .array(outboxLineSchema.partial({ segment: true }))
  .transform((lines) =>
    lines.map(
      (line): OutboxLine => ({ ...line, segment: line.segment ?? lines[0]?.sequence ?? line.sequence }),
    ),
  )

/** The life of one worker; `stopped_at` is when its end was seen, not when it was asked for. */
export const computeSchema = z.strictObject({
  id: z.string(),
  status: z.enum(['starting', 'live', 'stopping', 'stopped']),
  started_at: time,
  stopped_at: time.nullable(),
})

/**
 * Where a finished session's journal is as one object: the entries from the first to `through`, so many in each of its
 * frames. What a reader has to know to find any of them, and to prove the object.
 */
export const sealSchema = z.strictObject({
  /** The SHA-256 of the object in hex, by which it is named too. */
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  bytes: z.number().int().min(1),
  through: z.number().int().min(0),
  frame_entries: z.number().int().min(1),
  sealed_at: time,
  /** The segments that it covers are gone. */
  cleared: z.boolean(),
})
export type Seal = z.infer<typeof sealSchema>

/** A sequence of the journal; a time stood here before, which orders nothing and is forgotten. */
const orderedAt = z
  .union([z.number().int(), z.string().transform((): null => null)])
  .nullable()
  .default(null)

/** The part of the item that a replay can't know: executions, tokens, leases. */
export const runtimeSchema = z.strictObject({
  attempt: z.number().int(),
  execution_arn: z.string().nullable(),
  start_pending: z.boolean(),
  task: z.strictObject({ step: stepSchema, token: z.string() }).nullable(),
  command: z.strictObject({ id: z.string(), step: stepSchema, issued_at: time }).nullable(),
  last_command_id: z.string().nullable(),
  last_batch_id: z.string().nullable(),
  /**
   * Told to the worker, and to nobody else, once its last batch is in the journal: whoever names it knows that everything
   * up to `sequence` is.
   */
  receipt: z.strictObject({ id: z.string(), sequence: z.number().int() }).nullable().default(null),
  /** The last batches that held records of the agent, with their place in the journal. */
  record_batches: z
    .array(
      z.strictObject({
        id: z.string(),
        /** The hash of what it stated. */
        stated: z.string(),
        first: z.number().int(),
        count: z.number().int(),
      }),
    )
    .default([]),
  lease: z.strictObject({
    epoch: z.number().int(),
    worker_id: z.string().nullable(),
    expires_at: time.nullable(),
    /** What its worker named when it took it: a repeat of that call is told by it from another's. */
    claim: z.string().nullable().default(null),
  }),
  compute: computeSchema.nullable(),
  /** A worker whose place the present one has taken, and whose end was not seen yet. */
  replaced: z.string().nullable().default(null),
  answers: z.array(taskAnswerSchema),
  /** When a session asked for a slot, which is when it was created; its place in the queue. */
  queued_at: time.nullable(),
  settled: z.boolean(),
  /** A stopped session's worker, slot and execution are gone; only a person sets it going again. */
  resting: z.boolean().default(false),
  /** The `at` with which the step was entered that was heeded last; a call with an earlier one has nothing to say any more. */
  entered_at: orderedAt,
  /** The `at` of the step whose fault Recover dealt with last; a repeat of the same is recognised by it. */
  last_recovery: orderedAt,
  /** The import that made this session, and when; its repeat is recognised by it. */
  imported: z.strictObject({ by: z.string(), at: time }).nullable().default(null),
  /** When it was last seen that the machine carries the session on: by a step's arrival, or by the sweep. */
  looked_at: time,
  /** Null until the journal of a settled session is sealed. */
  sealed: sealSchema.nullable().default(null),
})
export type Runtime = z.infer<typeof runtimeSchema>

/**
 * The session item: what is true now. `revision` guards every write, `version` counts the document's changes (the
 * ETag), `outbox` holds journal lines that were decided with a write and are still to reach S3.
 */
export const sessionItemSchema = z.strictObject({
  team: z.string(),
  id: z.string(),
  revision: z.number().int(),
  version: z.number().int(),
  document: documentSchema,
  journal_head: headSchema,
  /** The sequence of the agent's last record; null while it has none beyond the session's creation. */
  agent_sequence: z.number().int().nullable().default(null),
  outbox: outboxSchema,
  runtime: runtimeSchema,
})
export type SessionItem = z.infer<typeof sessionItemSchema>

/**
 * What a decision wants written: facts for the journal (which alone change the document), runtime members, and a
 * sequence that is known to have reached the journal, and with it the segment that it is in and all before.
 */
export type Change = {
  actor: Actor
  facts: readonly Statement[]
  runtime?: Partial<Runtime>
  drained?: number
  /** The write also says that the machine carries the session on. */
  looked?: true
}

/** What a replay can't know of a session that has just been made. */
export const freshRuntime = (time: string): Runtime => ({
  attempt: 1,
  execution_arn: null,
  start_pending: true,
  task: null,
  command: null,
  last_command_id: null,
  last_batch_id: null,
  receipt: null,
  record_batches: [],
  lease: { epoch: 0, worker_id: null, expires_at: null, claim: null },
  compute: null,
  replaced: null,
  answers: [],
  queued_at: null,
  settled: false,
  resting: false,
  entered_at: null,
  last_recovery: null,
  imported: null,
  looked_at: time,
  sealed: null,
})

const fold = (document: Document | null, facts: readonly Fact[], time: string): Document => {
  let folded = document
  for (const fact of facts) if (isLifecycle(fact)) folded = foldRecord(folded, fact, time)
  if (!folded) throw new TypeError('a session starts with session_created')
  return folded
}

/** Gives the answers of this write their place behind what it puts into the outbox. */
const placed = (runtime: Runtime, last: number): Runtime => ({
  ...runtime,
  answers: runtime.answers.map((answer) => {
    if (answer.sequence !== null) return answer
    return answer.ok
      ? { ...answer, sequence: last, output: { ...answer.output, at: last } }
      : { ...answer, sequence: last }
  }),
})

/**
 * A change that the machine asks for, with what its asking proves: it came here by the answers of earlier writes, and
 * an answer is only given once everything up to its write has reached the journal. So both are done with, and nobody
 * has to write that down in a write of its own.
 */
export const arrived = (item: SessionItem, change: Change): Change => {
  const done = new Set(item.runtime.answers.map(({ token }) => token))
  const last = Math.max(-1, ...item.runtime.answers.map(({ sequence }) => sequence ?? -1))
  const answers = (change.runtime?.answers ?? item.runtime.answers).filter(({ token }) => !done.has(token))
  return {
    ...change,
    looked: true,
    drained: Math.max(last, change.drained ?? -1),
    runtime: { ...change.runtime, answers },
  }
}

const written = (
  identity: { team: string; id: string },
  before: {
    revision: number
    version: number
    document: Document | null
    head: Head
    agent_sequence: number | null
    outbox: readonly OutboxLine[]
  },
  change: Change,
  runtime: Runtime,
  time: string,
): SessionItem => {
  const { lines, facts, head } = chain(before.head, wellFormed(change.facts), {
    sessionId: identity.id,
    time,
    actor: change.actor,
  })
  const drained = change.drained ?? -1
  const lastOfAgent = facts.findLastIndex(isAgentFact)
  return {
    ...identity,
    revision: before.revision + 1,
    version: before.version + (facts.some(isLifecycle) ? 1 : 0),
    document: fold(before.document, facts, time),
    journal_head: head,
    agent_sequence: lastOfAgent < 0 ? before.agent_sequence : before.head.sequence + 1 + lastOfAgent,
    outbox: [
      ...before.outbox.filter(({ segment }) => segment > drained),
      ...lines.map((line, at) => {
        const sequence = before.head.sequence + 1 + at
        return { sequence, segment: sequence - (at % limits.journalBatch.entries), line }
      }),
    ],
    runtime: placed(
      { ...runtime, ...change.runtime, ...(change.looked ? { looked_at: time } : {}) },
      head.sequence,
    ),
  }
}

/** The item of a new session. */
export const createItem = (
  identity: { team: string; id: string },
  change: Change,
  time: string,
): SessionItem =>
  written(
    identity,
    { revision: 0, version: 0, document: null, head: emptyHead, agent_sequence: null, outbox: [] },
    change,
    freshRuntime(time),
    time,
  )

/** The item after a change: the document is the fold of the change's records, so journal and item can't disagree. */
export const changeItem = (item: SessionItem, change: Change, time: string): SessionItem =>
  written({ team: item.team, id: item.id }, { ...item, head: item.journal_head }, change, item.runtime, time)
