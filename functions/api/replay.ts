import { GatehouseError } from '../../lib/errors.ts'
import { isReplayError } from '../../lib/journal/state.ts'

/** What a fold comes to. Throws `journal_damaged` in the replay's own words where it stops. */
export const replayed = async <State>(fold: () => Promise<State>): Promise<State> => {
  try {
    return await fold()
  } catch (cause) {
    if (!isReplayError(cause)) throw cause
    throw new GatehouseError('journal_damaged', cause.message, { cause })
  }
}
