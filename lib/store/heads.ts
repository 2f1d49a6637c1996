import type { AgentState } from '../journal/agent/state.ts'
import { type Entry, fromLine } from '../journal/entry.ts'
import { foldState, type JournalState } from '../journal/state.ts'
import { limits } from '../limits.ts'
import type { SessionItem } from '../session/item.ts'
import type { Journals } from './journals.ts'
import type { Payloads } from './payloads.ts'
import type { States } from './states.ts'

/** Sessions whose state is remembered, and entries that are folded onto one before it is read anew. */
const remembered = { sessions: 16, entries: limits.eventsPageSize.max } as const

/**
 * States at the heads of sessions. Those of the sessions that this process was asked for last are remembered, so that a
 * journal which grows batch by batch is not folded as a whole for each of them.
 */
export const createHeads = (states: States, journals: Journals, payloads: Payloads) => {
  const known = new Map<string, JournalState>()

  const remember = (state: JournalState): JournalState => {
    const { id } = state.document
    known.delete(id)
    known.set(id, state)
    const [oldest] = known.keys()
    if (known.size > remembered.sessions && oldest !== undefined) known.delete(oldest)
    return state
  }

  /** The entries after a sequence, up to the item's head. */
  const after = async (item: SessionItem, sequence: number): Promise<Entry[]> => {
    const held = item.outbox.map(({ line }) => fromLine(line)).filter((entry) => entry.sequence > sequence)
    const first = held[0]?.sequence ?? item.journal_head.sequence + 1
    const missing = first - sequence - 1
    return [...(missing > 0 ? await journals.after(item, sequence, missing) : []), ...held]
  }

  /** Goes on from a remembered state; null where it does not lead to the item's head. */
  const goneOn = async (item: SessionItem, from: JournalState): Promise<JournalState | null> => {
    const { sequence, hash } = item.journal_head
    const behind = sequence - from.head.sequence
    if (behind < 0 || behind > remembered.entries) return null
    let state = from
    for (const entry of await after(item, from.head.sequence)) {
      if (entry.previous_hash !== state.head.hash) return null
      state = foldState(state, await payloads.resolve(item, entry))
    }
    return state.head.hash === hash ? state : null
  }

  return {
    /** What the journal comes to at the item's head. Throws what `states.at` throws. */
    at: async (item: SessionItem): Promise<JournalState> => {
      const from = known.get(item.id)
      const state = from ? await goneOn(item, from) : null
      return remember(state ?? (await states.at(item, item.journal_head.sequence)))
    },

    /**
     * Remembers, and where it is time keeps, what a write behind the sequence `since` came to, whose facts were applied to
     * the state before it; nothing where more was written since.
     */
    written: async (item: SessionItem, agent: AgentState, since: number): Promise<void> => {
      const { journal_head: head, document, agent_sequence } = item
      if (agent.tail_sequence !== head.sequence) return
      remember({ head, document, agent, agent_sequence })
      await states.saveAgent(item, { head, agent }, since)
    },
  }
}
