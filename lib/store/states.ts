import { GatehouseError } from '../errors.ts'
import { passOver } from '../journal/agent/reducer.ts'
import { restore, serialise } from '../journal/agent/serialise.ts'
import type { AgentState } from '../journal/agent/state.ts'
import { type Entry, fromLine } from '../journal/entry.ts'
import {
  type AgentSnapshot,
  agentSnapshotSchema,
  agentStride,
  isAgentSnapshotDue,
  isSnapshotDue,
  type Snapshot,
  snapshotSchema,
  toSnapshotText,
} from '../journal/snapshot.ts'
import { foldAgent, foldState, type JournalState } from '../journal/state.ts'
import { limits } from '../limits.ts'
import type { SessionItem } from '../session/item.ts'
import type { Blobs } from './blobs.ts'
import type { Journals } from './journals.ts'
import { objectKey } from './keys.ts'
import type { Payloads } from './payloads.ts'
import { snapshotsBefore } from './snapshots.ts'

type Start = Omit<Snapshot, 'format'>

const startOf = ({ journal_head: head, agent_sequence, document }: SessionItem): Start => ({
  ...head,
  agent_sequence,
  document,
})

const missing = ({ id }: SessionItem, sequence: number): never => {
  throw new GatehouseError('journal_damaged', `the journal of ${id} has no entry ${sequence}`)
}

export type States = ReturnType<typeof createStates>

/**
 * States that a session's journal comes to, folded from the nearest snapshot. `every` is how many entries lie at most
 * between two snapshots, where nothing else asks for one.
 */
export const createStates = (
  blobs: Blobs,
  journals: Journals,
  payloads: Payloads,
  every: number = limits.snapshotEvery,
) => {
  /** Entries from one sequence to another, those that are still on their way out included; fewer where there are fewer. */
  async function* entries(item: SessionItem, from: number, to: number): AsyncGenerator<Entry> {
    let next = from
    const leaving = item.outbox[0]?.sequence ?? Number.POSITIVE_INFINITY
    while (next <= to && next < leaving) {
      const limit = Math.min(limits.eventsPageSize.max, to - next + 1)
      const page = await journals.after(item, next - 1, limit)
      if (page.length === 0) break
      for (const entry of page) yield await payloads.resolve(item, entry)
      next += page.length
    }
    for (const { sequence, line } of item.outbox)
      if (sequence >= next && sequence <= to) yield await payloads.resolve(item, fromLine(line))
  }

  const hasEntry = async (item: SessionItem, { sequence, hash }: AgentSnapshot): Promise<boolean> => {
    for await (const entry of entries(item, sequence, sequence)) return entry.hash === hash
    return false
  }

  /** The agent's state to go on from: that of the nearest snapshot, or none. */
  const nearestAgent = async (item: SessionItem, sequence: number): Promise<AgentState | null> => {
    const { team, id } = item
    const kind = {
      prefix: objectKey.agentSnapshotPrefix(team, id),
      key: (of: number) => objectKey.agentSnapshot(team, id, of),
      schema: agentSnapshotSchema,
    }
    const window = 2 * agentStride(sequence, every)
    for await (const snapshot of snapshotsBefore(blobs, kind, sequence, window))
      if (await hasEntry(item, snapshot)) return restore(snapshot.agent)
    return null
  }

  /** The agent's state where its last record is known: nothing that lies behind that one is read. */
  const agentAt = async (
    item: SessionItem,
    { sequence, agent_sequence: last }: Start,
  ): Promise<AgentState> => {
    let agent = last === null ? null : await nearestAgent(item, last)
    for await (const entry of entries(item, (agent?.tail_sequence ?? -1) + 1, last ?? 0))
      agent = foldAgent(agent, entry)
    return agent?.tail_sequence === (last ?? 0) ? passOver(agent, sequence) : missing(item, last ?? 0)
  }

  const stateAt = async (item: SessionItem, start: Start): Promise<JournalState> => ({
    head: { sequence: start.sequence, hash: start.hash },
    document: start.document,
    agent: await agentAt(item, start),
    agent_sequence: start.agent_sequence,
  })

  /**
   * Folds on from a snapshot, or from zero; null where the entry that the snapshot names is another or is missing. Throws
   * where the journal ends too early.
   */
  const folded = async (
    item: SessionItem,
    start: Start | null,
    sequence: number,
  ): Promise<JournalState | null> => {
    let state: JournalState | null = null
    for await (const entry of entries(item, start?.sequence ?? 0, sequence)) {
      if (state !== null || start === null) state = foldState(state, entry)
      else if (entry.hash === start.hash) state = await stateAt(item, start)
      else return null
    }
    if (state === null && start !== null) return null
    return state?.head.sequence === sequence ? state : missing(item, sequence)
  }

  return {
    /**
     * Keeps what the item's journal comes to at its head, where what is on its way out asks for it. Harmless to repeat.
     */
    save: async (item: SessionItem): Promise<void> => {
      if (!isSnapshotDue(item.outbox, every)) return
      const { team, id, journal_head: head } = item
      await blobs.put(objectKey.snapshot(team, id, head.sequence), toSnapshotText(startOf(item)))
    },

    /**
     * Keeps the agent's state, where records of the agent that were written behind the sequence `since` ask for it: the
     * head of the item before that write. Harmless to repeat.
     */
    saveAgent: async (
      { team, id }: Pick<SessionItem, 'team' | 'id'>,
      { head, agent }: Pick<JournalState, 'head' | 'agent'>,
      since: number,
    ): Promise<void> => {
      if (!isAgentSnapshotDue(agent, since, every)) return
      const text = toSnapshotText({ ...head, agent: serialise(agent) })
      await blobs.put(objectKey.agentSnapshot(team, id, head.sequence), text)
    },

    /**
     * What the journal comes to at one of its entries, which may still be in the item's outbox. Throws `journal_damaged`
     * where it can't be read so far, ReplayError or AgentReplayError where it does not replay.
     */
    at: async (item: SessionItem, sequence: number): Promise<JournalState> => {
      const { team, id, journal_head: head } = item
      if (sequence === head.sequence) return stateAt(item, startOf(item))
      const kind = {
        prefix: objectKey.snapshotPrefix(team, id),
        key: (of: number) => objectKey.snapshot(team, id, of),
        schema: snapshotSchema,
      }
      for await (const snapshot of snapshotsBefore(blobs, kind, sequence, 2 * every)) {
        const state = await folded(item, snapshot, sequence)
        if (state !== null) return state
      }
      return (await folded(item, null, sequence)) ?? missing(item, sequence)
    },
  }
}
