import { z } from 'zod'
import type { IdPrefix } from '../../ids.ts'
import { declaredCalls, messageSchema } from './messages.ts'
import {
  checkpointSchema,
  compactionSchema,
  configurationSchema,
  pendingApprovalSchema,
  runRecoverySchema,
  toolCallSchema,
} from './projection.ts'
import { metadataSchema, v7IdSchema } from './scalars.ts'
import type { Series, Versions } from './series.ts'
import type { AgentState } from './state.ts'
import { addLane, emptyLane, emptyStore, type Lane, type Store } from './store.ts'

const sequence = z.number().int().min(0)
const series = <Value extends z.ZodType>(value: Value) => z.array(z.tuple([sequence, value]))
const versions = <Value extends z.ZodType>(prefix: IdPrefix, value: Value) =>
  z.array(z.tuple([v7IdSchema(prefix), series(value)]))

const contextSchema = z.strictObject({
  floor: z.number().int(),
  summaries: z.array(z.strictObject({ through: sequence, message: messageSchema })),
  latest: compactionSchema.nullable(),
})

const laneSchema = z.strictObject({
  branch: z.string().nullable(),
  source: z.string().nullable(),
  from: z.string(),
  parent: sequence.nullable(),
  cut: z.number().int(),
  created: sequence,
  configurations: series(configurationSchema),
  contexts: series(contextSchema),
  checkpoints: series(checkpointSchema),
  open: series(z.strictObject({ unsettled: sequence, pending: sequence })),
  messages: series(messageSchema),
  calls: versions('call', toolCallSchema),
  approvals: versions('apr', z.union([pendingApprovalSchema, z.literal('closed')])),
  runs: versions('run', runRecoverySchema),
})

/** A state as JSON: all that going on from it needs. Grows with the state and holds no record. */
export const serialisedSchema = z.strictObject({
  session_id: z.string(),
  tail_sequence: sequence,
  tail_record_id: z.string(),
  metadata: metadataSchema,
  records: series(v7IdSchema('evt')),
  places: series(sequence),
  active: series(sequence),
  lanes: z.array(laneSchema).min(1),
})
export type Serialised = z.infer<typeof serialisedSchema>

const serialiseLane = (lane: Lane, at: number): Serialised['lanes'][number] => ({
  branch: lane.branch,
  source: lane.source,
  from: lane.from,
  parent: lane.parent,
  cut: lane.cut,
  created: lane.created,
  configurations: [...lane.configurations.between(-1, at)],
  contexts: [...lane.contexts.between(-1, at)].map(([sequence, context]) => [
    sequence,
    { ...context, summaries: [...context.summaries] },
  ]),
  checkpoints: [...lane.checkpoints.between(-1, at)],
  open: [...lane.open.between(-1, at)],
  messages: [...lane.messages.between(-1, at)],
  calls: [...lane.calls.upTo(at)],
  approvals: [...lane.approvals.upTo(at)],
  runs: [...lane.runs.upTo(at)],
})

export const serialise = ({ store, ...rest }: AgentState): Serialised => {
  const at = rest.tail_sequence
  return {
    ...rest,
    records: [...store.records.upTo(at)],
    places: [...store.places.between(-1, at)],
    active: [...store.active.between(-1, at)],
    lanes: store.lanes.filter(({ created }) => created <= at).map((lane) => serialiseLane(lane, at)),
  }
}

const fill = <Value>(series: Series<Value>, values: readonly [number, Value][]): void => {
  for (const [sequence, value] of values) series.push(sequence, value)
}

const fillVersions = <Value>(into: Versions<Value>, values: readonly [string, [number, Value][]][]): void => {
  for (const [key, versions] of values)
    for (const [sequence, value] of versions) into.set(key, sequence, value)
}

/** What the lanes say twice over is not written down, but found again: which ids are used, and since when. */
const index = (store: Store, data: Serialised['lanes'][number]): void => {
  for (const [sequence, message] of data.messages) {
    store.messages.add(message.id, sequence)
    for (const { tool_call_id } of declaredCalls(message)) store.declarations.add(tool_call_id, sequence)
  }
  for (const [sequence, { latest }] of data.contexts)
    if (latest) store.messages.add(latest.summary.id, sequence)
  // A call that changes on a fork stands there too, but it was requested where it stands first.
  for (const [id, [first]] of data.calls)
    if (first && store.requests.get(id) === undefined) store.requests.add(id, first[0])
  for (const [id, [first]] of data.approvals) if (first) store.approvals.add(id, first[0])
}

/** The state that was serialised. Takes what `serialisedSchema` has accepted. */
export const restore = ({ records, places, active, lanes, ...rest }: Serialised): AgentState => {
  const store = emptyStore()
  store.end = rest.tail_sequence
  for (const [sequence, id] of records) store.records.add(id, sequence)
  fill(store.places, places)
  fill(store.active, active)
  for (const data of lanes) {
    const lane = emptyLane(data)
    fill(lane.configurations, data.configurations)
    fill(lane.contexts, data.contexts)
    fill(lane.checkpoints, data.checkpoints)
    fill(lane.open, data.open)
    fill(lane.messages, data.messages)
    fillVersions(lane.calls, data.calls)
    fillVersions(lane.approvals, data.approvals)
    fillVersions(lane.runs, data.runs)
    addLane(store, lane)
    index(store, data)
  }
  return { ...rest, store }
}
