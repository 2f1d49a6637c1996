import { randomUUID } from 'node:crypto'
import type { EventFact } from '../../lib/journal/event-facts.ts'
import { limits } from '../../lib/limits.ts'
import { firstBytes } from '../../lib/text/shorten.ts'

export type Reporter = ReturnType<typeof createReporter>

const sendAfterMs = 500
/** Engine output that may wait to be sent; more than this at once is counted instead of kept. */
const outputRoom = 32 * 1024
/** Events that wait together; what comes last may be on top of this. */
const batchRoom = limits.journalBatch.bytes / 2

const jsonBytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))

/**
 * Gathers a command's events and sends them in order, in batches by time and size. What an engine prints is joined and
 * bounded, so that a flood costs a line that counts what was left out; the whole text is an artifact.
 */
export const createReporter = (send: (batchId: string, facts: EventFact[]) => Promise<void>) => {
  let waiting: EventFact[] = []
  let bytes = 0
  let output: { iteration: number; text: string; omitted: number } | null = null
  let timer: NodeJS.Timeout | null = null
  let sending: Promise<void> = Promise.resolve()

  const add = (fact: EventFact): void => {
    waiting.push(fact)
    bytes += jsonBytes(fact)
  }

  const closeOutput = () => {
    if (!output) return
    const { iteration, text, omitted } = output
    output = null
    add({ type: 'engine_output', data: { iteration, text, omitted_bytes: omitted } })
  }

  const flush = (): Promise<void> => {
    if (timer) clearTimeout(timer)
    timer = null
    closeOutput()
    const facts = waiting
    waiting = []
    bytes = 0
    if (facts.length > 0) sending = sending.then(() => send(randomUUID(), facts))
    return sending
  }

  const later = () => {
    // A batch that can't be sent ends the command through the flush that waits for it.
    timer ??= setTimeout(() => void flush().catch(() => {}), sendAfterMs)
  }

  return {
    event: (fact: EventFact): void => {
      closeOutput()
      const full = bytes + jsonBytes(fact) > batchRoom || waiting.length + 1 >= limits.journalBatch.entries
      if (full) void flush().catch(() => {})
      add(fact)
      later()
    },

    engineOutput: (iteration: number, text: string): void => {
      output ??= { iteration, text: '', omitted: 0 }
      // Control characters grow up to six times as JSON.
      const room = Math.floor((outputRoom - jsonBytes(output.text)) / 6)
      const kept = jsonBytes(text) <= outputRoom - jsonBytes(output.text) ? text : firstBytes(text, room)
      output.text += kept
      output.omitted += Buffer.byteLength(text) - Buffer.byteLength(kept)
      later()
    },

    /** Sends all that is waiting but a last small batch, which is returned to travel with the command's end. */
    drain: async (): Promise<EventFact[]> => {
      if (timer) clearTimeout(timer)
      timer = null
      closeOutput()
      await sending
      const rest = waiting
      waiting = []
      bytes = 0
      return rest
    },
  }
}
