import fc from 'fast-check'
import { expect, it } from 'vitest'
import { restore, serialise, serialisedSchema } from '../../../lib/journal/agent/serialise.ts'
import { materialise } from '../../../lib/journal/agent/state.ts'
import { canonical, type Entry, fromLine } from '../../../lib/journal/entry.ts'
import { foldState, type JournalState } from '../../../lib/journal/state.ts'
import { createVerifier, type Expected } from '../../../lib/journal/verify.ts'
import { documentSchema } from '../../../lib/session/document.ts'
import { histories, linesOf } from './histories.ts'

/** A state as it comes back from where it was written down. */
const reborn = ({ agent, document, ...rest }: JournalState): JournalState => ({
  ...rest,
  document: documentSchema.parse(JSON.parse(canonical(document))),
  agent: restore(serialisedSchema.parse(JSON.parse(JSON.stringify(serialise(agent))))),
})

const onwards = (state: JournalState | null, entries: readonly Entry[]): JournalState => {
  const last = entries
    .slice(state ? state.head.sequence + 1 : 0)
    .reduce<JournalState | null>(foldState, state)
  if (!last) throw new Error('a history has entries')
  return last
}

const summary = ({ head, document, agent, agent_sequence }: JournalState) => ({
  ...{ head, agent_sequence, document: canonical(document) },
  agent: materialise(agent),
})

it('a journal folds the same in one go, from its lines, and in pieces from any state that was written down', () => {
  fc.assert(
    fc.property(histories, fc.array(fc.nat(), { minLength: 4, maxLength: 4 }), (history, places) => {
      const { entries, states } = history
      const whole = summary(onwards(null, entries))
      expect(summary(onwards(null, linesOf(history).map(fromLine)))).toEqual(whole)
      for (const place of places) {
        const state = states[place % states.length]
        if (state) expect(summary(onwards(reborn(state), entries))).toEqual(whole)
      }
    }),
    { numRuns: 60 },
  )
})

it('such journals reach what they are about', () => {
  const seen = new Set<string>()
  for (const { entries } of fc.sample(histories, { numRuns: 60, seed: 7 }))
    for (const { type } of entries) seen.add(type)
  const agents = ['tool_execution_finished', 'branch_created', 'active_branch_changed', 'session_compacted']
  const others = ['error', 'step_completed', 'checkpoint_created', 'engine_finished', 'gate_opened']
  expect([...seen]).toEqual(expect.arrayContaining([...agents, ...others]))
})

const verified = (lines: readonly string[], sessionId: string, expected: Expected) => {
  const verifier = createVerifier(sessionId)
  for (const line of lines) {
    const entry = verifier.take(line)
    if (entry) verifier.fold(entry)
  }
  return verifier.end(expected)
}

/** A changed byte, as whoever reads the stored text finds it. */
const withByte = (text: string, place: number, byte: number): string => {
  const bytes = Buffer.from(text)
  bytes[place] = byte
  return bytes.toString()
}

const linesIn = (text: string): string[] => (text.endsWith('\n') ? text.slice(0, -1) : text).split('\n')

/** Bytes that a reader of JSON may pass over, or take for what was there before. */
const byte = fc.oneof(fc.nat({ max: 255 }), fc.constantFrom(...Buffer.from(' \t\n\r"\\/{},:AFaf0_')))

it('a changed byte is found wherever it is, and its entry is the first that is named', () => {
  fc.assert(
    fc.property(
      histories,
      fc.array(fc.tuple(fc.nat(), byte), { minLength: 20, maxLength: 20 }),
      (history, changes) => {
        const lines = linesOf(history)
        const text = lines.map((line) => `${line}\n`).join('')
        const last = onwards(null, history.entries)
        const proof = (changed: string) => verified(linesIn(changed), last.document.id, last)
        expect(proof(text)).toEqual({ ok: true, entries: lines.length, head: last.head })
        const bytes = Buffer.from(text)
        for (const [dice, value] of changes) {
          const place = dice % bytes.length
          if (bytes[place] === value) continue
          const sequence = bytes.subarray(0, place).toString('latin1').split('\n').length - 1
          expect(proof(withByte(text, place, value))).toMatchObject({ ok: false, problem: { sequence } })
        }
      },
    ),
    { numRuns: 40 },
  )
})
