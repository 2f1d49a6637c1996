import { IdIndex } from './id-index.ts'
import type { Message } from './messages.ts'
import type {
  Checkpoint,
  Compaction,
  Configuration,
  PendingApproval,
  RunRecovery,
  ToolCall,
} from './projection.ts'
import { Series, Versions } from './series.ts'

/**
 * What a branch's transcript consists of: the summaries, each standing at the record through which it speaks, and then
 * the messages that were committed after the sequence `floor`.
 */
export type Context = {
  readonly floor: number
  readonly summaries: readonly { readonly through: number; readonly message: Message }[]
  readonly latest: Compaction | null
}

/** How much keeps a place from being safe to fork: visible calls without a result, and open questions. */
export type Open = { readonly unsettled: number; readonly pending: number }

/**
 * What one branch adds to its parent's history. A fork copies nothing: it names its parent and the last sequence of it
 * that is its own past. Only what has a single value is written down once more, so that reading it walks no ancestors.
 */
export type Lane = {
  readonly branch: string | null
  readonly source: string | null
  readonly from: string
  readonly parent: number | null
  readonly cut: number
  readonly created: number
  readonly configurations: Series<Configuration>
  readonly contexts: Series<Context>
  readonly checkpoints: Series<Checkpoint>
  readonly open: Series<Open>
  readonly messages: Series<Message>
  readonly calls: Versions<ToolCall>
  readonly approvals: Versions<PendingApproval | 'closed'>
  readonly runs: Versions<RunRecovery>
}

/**
 * All that records have brought, only ever added to. Several states may share one store, each reading no further than
 * its own tail; `end` is the tail of the newest, and the only one that may add to it (state.ts).
 */
export type Store = {
  end: number
  readonly records: IdIndex
  readonly messages: IdIndex
  readonly approvals: IdIndex
  /** The calls that an assistant's message declared, by where it stands, and those that were requested. */
  readonly declarations: IdIndex
  readonly requests: IdIndex
  readonly lanes: Lane[]
  readonly laneOf: Map<string | null, number>
  /** Which branch's history each record belongs to, where that changes. */
  readonly places: Series<number>
  readonly active: Series<number>
}

export const emptyStore = (): Store => ({
  end: -1,
  records: new IdIndex('evt'),
  messages: new IdIndex('msg'),
  approvals: new IdIndex('apr'),
  declarations: new IdIndex('call'),
  requests: new IdIndex('call'),
  lanes: [],
  laneOf: new Map(),
  places: new Series(),
  active: new Series(),
})

export const emptyLane = (
  origin: Pick<Lane, 'branch' | 'source' | 'from' | 'parent' | 'cut' | 'created'>,
): Lane => ({
  ...origin,
  configurations: new Series(),
  contexts: new Series(),
  checkpoints: new Series(),
  open: new Series(),
  messages: new Series(),
  calls: new Versions(),
  approvals: new Versions(),
  runs: new Versions(),
})

export const addLane = (store: Store, lane: Lane): number => {
  store.laneOf.set(lane.branch, store.lanes.length)
  return store.lanes.push(lane) - 1
}

/** The lane that a view or an effect speaks of; it was found by its index before. */
export const laneAt = (store: Store, index: number): Lane => {
  const lane = store.lanes[index]
  if (!lane) throw new RangeError(`there is no lane ${index}`)
  return lane
}

/** Notes a record's id, and the history that it belongs to. */
export const place = (store: Store, sequence: number, id: string, lane: number): void => {
  store.records.add(id, sequence)
  if (store.places.at(sequence) !== lane) store.places.push(sequence, lane)
}
