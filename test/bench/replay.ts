import { fromLine } from '../../lib/journal/entry.ts'
import { foldState, type JournalState } from '../../lib/journal/state.ts'
import { createVerifier } from '../../lib/journal/verify.ts'
import { history } from './history.ts'
import { compare, cpuTime, figure, median, row } from './measure.ts'

const entries = 5000
const rounds = 60

/** A line as it comes out of a store: one flat text. */
const stored = (line: string): string => Buffer.from(line).toString()

const prove = (lines: readonly string[]): void => {
  const verifier = createVerifier(fromLine(lines[0] ?? '').session_id)
  for (const line of lines) {
    const entry = verifier.take(line)
    if (entry) verifier.fold(entry)
  }
  if (verifier.head().sequence !== lines.length - 1) throw new Error('the journal does not verify')
}

const parse = (lines: readonly string[]): void => {
  for (const line of lines) JSON.parse(line)
}

const fold = (lines: readonly string[]): void => {
  let state: JournalState | null = null
  for (const line of lines) state = foldState(state, fromLine(line))
}

/** Replay with every check against bare parsing, and without the chain's. */
export const replay = async (): Promise<void> => {
  const lines = Array.from(history('realistic', entries), stored)
  const both = await compare(
    rounds,
    async () => prove(lines),
    async () => parse(lines),
    cpuTime,
  )
  console.log(row(`${entries} entries proven and folded : JSON.parse`, both, 4))
  const times: number[] = []
  for (let round = 0; round < rounds; round++) times.push(await cpuTime(async () => fold(lines)))
  const perSecond = Math.round(entries / (median(times) / 1000))
  console.log(
    figure('entries a second, from line to state, without the chain', `${perSecond}`, {
      text: '≥ 100000',
      isMet: perSecond >= 100_000,
    }),
  )
}
