import { GatehouseError } from '../errors.ts'
import { canonical, fromLine } from '../journal/entry.ts'
import { foldState, type JournalState } from '../journal/state.ts'
import type { SessionItem } from '../session/item.ts'
import type { Blobs } from './blobs.ts'
import type { Journals } from './journals.ts'
import { objectKey } from './keys.ts'
import type { Payloads } from './payloads.ts'

/** States that a session's journal comes to, folded from the nearest snapshot. */
export const createStates = (blobs: Blobs, journals: Journals, payloads: Payloads) => ({
  /** Writes down what the item's journal comes to at its head, for later folds to go on from. Harmless to repeat. */
  save: ({ team, id, version, document }: SessionItem): Promise<void> =>
    blobs.put(objectKey.snapshot(team, id, version), canonical(document)),

  /**
   * What the journal comes to at one of its entries, which may still be in the item's outbox. Throws `journal_damaged`
   * where it can't be read so far, ReplayError or AgentReplayError where it does not replay.
   */
  at: async (item: SessionItem, sequence: number): Promise<JournalState> => {
    let state: JournalState | null = null
    const fold = async (line: string) => {
      const entry = fromLine(line)
      if (entry.sequence > sequence || entry.sequence <= (state?.head.sequence ?? -1)) return
      state = foldState(state, await payloads.resolve(item, entry))
    }
    const reached = (): JournalState | null => state
    for await (const lines of journals.segments(item)) {
      for (const line of lines) await fold(line)
      if ((reached()?.head.sequence ?? -1) >= sequence) break
    }
    for (const { line } of item.outbox) await fold(line)
    const found = reached()
    if (found?.head.sequence !== sequence)
      throw new GatehouseError('journal_damaged', `the journal of ${item.id} has no entry ${sequence}`)
    return found
  },
})
