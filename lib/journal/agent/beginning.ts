import { limits } from '../../limits.ts'
import { refOf } from '../data-ref.ts'
import {
  type Actor,
  type Context,
  canonical,
  chain,
  emptyHead,
  type Head,
  type Statement,
  toLine,
} from '../entry.ts'
import type { LifecycleFact } from '../lifecycle-facts.ts'
import { foldState, type JournalState } from '../state.ts'
import type { AgentRecord } from './envelope.ts'

type Created = Extract<LifecycleFact, { type: 'session_created' }>

/** A journal that begins with records: its lines, what they come to, and the data that its entries only refer to. */
export type Beginning = {
  readonly lines: readonly string[]
  readonly state: JournalState
  /** Canonical JSON by the name of its artifact. */
  readonly artifacts: ReadonlyMap<string, string>
}

const stampOf = ({ id, time, branch, causation_id, correlation_id, metadata }: AgentRecord): Context => ({
  ...{ id, time, branch },
  ...(causation_id === undefined ? {} : { causation_id }),
  ...(correlation_id === undefined ? {} : { correlation_id }),
  ...(metadata === undefined ? {} : { metadata }),
})

/**
 * What the journal says of a record, with all that stood around it; the first one is told by the session's own first
 * fact, which holds it.
 */
const statementOf = (record: AgentRecord, created: Created): Statement => {
  const context = stampOf(record)
  if (record.type === 'session_created') {
    const data = { ...created.data, agent: record.data }
    return { type: created.type, data, context }
  }
  const { sequence, id, session_id, branch, time, causation_id, correlation_id, metadata, ...fact } = record
  return { ...fact, context }
}

/**
 * Gives imported records their entries, so that an export finds the very same records. The same records and the same
 * first fact always make the same journal. Takes what `importRecords` accepted.
 */
export const beginWith = (records: readonly AgentRecord[], created: Created, actor: Actor): Beginning => {
  const lines: string[] = []
  const artifacts = new Map<string, string>()
  let head: Head = emptyHead
  let state: JournalState | null = null
  for (const record of records) {
    const statement = statementOf(record, created)
    const text = canonical(statement.data)
    const isLarge = record.type !== 'session_created' && Buffer.byteLength(text) > limits.journalEntry
    const data_ref = isLarge ? refOf(text) : null
    if (data_ref) artifacts.set(data_ref.artifact, text)
    const stated = data_ref ? { ...statement, context: { ...statement.context, data_ref } } : statement
    const stamp = { sessionId: record.session_id, time: record.time, actor }
    const { entries, head: next } = chain(head, [stated], stamp)
    for (const entry of entries) {
      state = foldState(state, data_ref ? { ...entry, data: { ...statement.data } } : entry)
      lines.push(toLine(entry))
    }
    head = next
  }
  if (!state) throw new TypeError('there are no records')
  return { lines, state, artifacts }
}
