import { z } from 'zod'
import { isObject } from './json.ts'
import { agentFactSchema, branchSchema, creationSchema } from './records.ts'
import { metadataSchema, timeSchema, v7IdPattern, v7IdSchema } from './scalars.ts'

/** What the agent's reducer reads of a journal entry beside its fact. `branch` is null in a session without branches. */
export const stampSchema = z.strictObject({
  /** Beyond 2^53 a place is only near what was written; it can be read, to be refused as out of order. */
  sequence: z.number().min(0).refine(Number.isInteger, 'has to be a whole number'),
  id: v7IdSchema('evt'),
  session_id: v7IdSchema('ses'),
  branch: branchSchema.nullable(),
  time: timeSchema,
  /** The command or the record that caused this one. */
  causation_id: z.union([v7IdSchema('cmd'), v7IdSchema('evt')]).optional(),
  /** Usually the run. */
  correlation_id: v7IdSchema('run').optional(),
  metadata: metadataSchema.optional(),
})

const factSchema = z.discriminatedUnion('type', [creationSchema, ...agentFactSchema.options])

/** A record with its place: what the reducer applies. */
export type AgentRecord = z.infer<typeof stampSchema> & z.infer<typeof factSchema>

/** What came of reading a value: the record, or all that is wrong with it. */
export type Reading =
  | { readonly ok: true; readonly record: AgentRecord }
  | { readonly ok: false; readonly issues: readonly z.core.$ZodIssue[] }

const namesItsBranch = (record: AgentRecord): boolean =>
  (record.type !== 'branch_created' && record.type !== 'active_branch_changed') ||
  record.branch === record.data.branch_id

const otherBranch: z.core.$ZodIssue = {
  code: 'custom',
  message: 'the branch has to be the one that it speaks of',
  path: ['branch'],
  input: undefined,
}

const named = (record: AgentRecord): Reading =>
  namesItsBranch(record) ? { ok: true, record } : { ok: false, issues: [otherBranch] }

/** Reads one record (spec/session-record.md B.3, B.4): every check that needs no state. */
export const readRecord = (value: unknown): Reading => {
  const { type, data, ...stamp } = isObject(value) ? value : {}
  const place = stampSchema.safeParse(stamp)
  const fact = factSchema.safeParse({ type, data })
  if (!place.success || !fact.success)
    return { ok: false, issues: [place, fact].flatMap(({ error }) => error?.issues ?? []) }
  return named({ ...place.data, ...fact.data })
}

const [entryId, sessionId] = [v7IdPattern('evt'), v7IdPattern('ses')]

/**
 * Reads a fact whose place an entry's schema has accepted before, so that of the stamp's rules only one is left: that
 * its ids are of version 7.
 */
export const readPlaced = (
  place: z.infer<typeof stampSchema>,
  stated: { type: unknown; data: unknown },
): Reading => {
  const fact = factSchema.safeParse(stated)
  if (!fact.success || !entryId.test(place.id) || !sessionId.test(place.session_id))
    return readRecord({ ...place, ...stated })
  return named({ ...place, ...fact.data })
}
