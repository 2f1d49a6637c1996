import { z } from 'zod'
import { fromLine } from '../../lib/journal/entry.ts'
import { foldState, type JournalState } from '../../lib/journal/state.ts'
import { history } from './history.ts'

/**
 * Folds a journal that is made line by line as it is folded, and tells in bytes what the state takes and how large the
 * process became: fold-alone.ts MIX ENTRIES.
 */
const [mix, entries] = z
  .tuple([z.enum(['realistic', 'messages']), z.coerce.number().int().min(1)])
  .parse(process.argv.slice(2))

const used = (): number => {
  globalThis.gc?.()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

const folded = (length: number): JournalState | null => {
  let state: JournalState | null = null
  for (const line of history(mix, length)) state = foldState(state, fromLine(line))
  return state
}

// Whatever is made once, such as compiled code, is made before the count begins.
folded(5000)
const before = used()
const state = folded(entries)
const after = used()
if (state?.head.sequence !== entries - 1) throw new Error('the journal was not folded to its end')
console.log(JSON.stringify({ state: after - before, peak: process.resourceUsage().maxRSS * 1024 }))
