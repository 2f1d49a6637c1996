import { append } from './append.ts'
import { memory } from './memory.ts'
import { pages } from './pages.ts'
import { replay } from './replay.ts'
import { sessions } from './sessions.ts'

const sections: Record<string, () => Promise<void>> = {
  sessions,
  'journal-replay': replay,
  'journal-memory': memory,
  'journal-append': append,
  'journal-pages': pages,
}

/** Runs the sections whose names begin with what is asked for (`npm run bench -- journal`); all of them by default. */
const asked = process.argv.slice(2)
const chosen = Object.entries(sections).filter(
  ([name]) => asked.length === 0 || asked.some((prefix) => name.startsWith(prefix)),
)
if (chosen.length === 0) throw new Error(`there are these sections: ${Object.keys(sections).join(', ')}`)

console.log(`${''.padEnd(58)} ${'Gatehouse'.padStart(12)} ${'bare'.padStart(12)}  ratio`)
for (const [, run] of chosen) await run()
