import { randomUUID } from 'node:crypto'
import type { EventFact } from '../../lib/journal/facts.ts'
import { limits } from '../../lib/limits.ts'
import { clip } from './text.ts'

export type Reporter = ReturnType<typeof createReporter>

const sendAfterMs = 500
/** Engine output that may wait to be sent; more than this at once is counted instead of kept. */
const outputRoom = 32 * 1024

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

  const closeOutput = () => {
    if (!output) return
    waiting.push({
      type: 'engine_output',
      data: { iteration: output.iteration, text: output.text, omitted_bytes: output.omitted },
    })
    output = null
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
      const size = JSON.stringify(fact).length
      if (bytes + size > limits.journalBatch.bytes / 2 || waiting.length + 1 >= limits.journalBatch.entries)
        void flush().catch(() => {})
      waiting.push(fact)
      bytes += size
      later()
    },

    engineOutput: (iteration: number, text: string): void => {
      output ??= { iteration, text: '', omitted: 0 }
      const room = outputRoom - Buffer.byteLength(output.text)
      const kept = clip(text, room)
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
