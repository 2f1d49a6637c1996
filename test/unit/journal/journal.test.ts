import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { newId } from '../../../lib/ids.ts'
import {
  type Context,
  canonical,
  chain,
  type Entry,
  emptyHead,
  fromLine,
  fromLines,
  type Head,
  hashOf,
  isIntact,
  toLine,
} from '../../../lib/journal/entry.ts'
import type { Fact } from '../../../lib/journal/facts.ts'
import { foldEntry, foldJournal, ReplayError } from '../../../lib/journal/fold.ts'
import { verifyJournal } from '../../../lib/journal/verify.ts'
import { changeItem, createItem } from '../../../lib/session/item.ts'
import { ada, at, creation, creationChange, system } from '../../support/sessions.ts'

const id = newId('ses')
const stamp = { sessionId: id, time: at(0), actor: ada }

const fact: fc.Arbitrary<Fact> = fc.oneof(
  fc.string({ unit: 'binary' }).map((message): Fact => ({ type: 'error', data: { message } })),
  fc
    .string({ unit: 'binary' })
    .map((text): Fact => ({ type: 'operator_guidance', data: { text, status: 'accepted', by: 'ada' } })),
  fc.nat({ max: 4 }).map(
    (count): Fact => ({
      type: 'infrastructure_fault',
      data: { step: 'Code', cause: 'lost', detail: '…', count },
    }),
  ),
)

type Journal = { entries: Entry[]; head: Head }
const journal = fc
  .array(fact, { minLength: 2, maxLength: 20 })
  .map((facts): Journal => chain(emptyHead, [creation(id, 'team'), ...facts], stamp))

const rehashed = (entry: Entry): Entry => ({ ...entry, hash: hashOf(entry) })

/** One damage at a place that exists; gives the damaged entries and the first sequence that is wrong. */
const damages: Record<string, (entries: Entry[], place: number) => { damaged: Entry[]; first: number }> = {
  'changed data': (entries, place) => ({
    damaged: entries.map((entry, n) =>
      n === place ? { ...entry, data: { ...entry.data, planted: 1 } } : entry,
    ),
    first: place,
  }),
  'a changed time': (entries, place) => ({
    damaged: entries.map((entry, n) => (n === place ? { ...entry, time: at(5) } : entry)),
    first: place,
  }),
  'another actor': (entries, place) => ({
    damaged: entries.map((entry, n) => (n === place ? { ...entry, actor: system } : entry)),
    first: place,
  }),
  // The hash over the change is right, so it shows where the next entry names its predecessor.
  'changed and hashed anew': (entries, place) => ({
    damaged: entries.map((entry, n) => (n === place ? rehashed({ ...entry, time: at(5) }) : entry)),
    first: place + 1,
  }),
  missing: (entries, place) => ({ damaged: entries.toSpliced(place, 1), first: place }),
  doubled: (entries, place) => ({
    damaged: entries.toSpliced(place, 0, ...entries.slice(place, place + 1)),
    first: place + 1,
  }),
  swapped: (entries, place) => {
    const other = place === 0 ? 1 : place - 1
    const damaged = entries.map((entry, n) => entries[n === place ? other : n === other ? place : n] ?? entry)
    return { damaged, first: Math.min(place, other) }
  },
  inserted: (entries, place) => {
    const before: Head = place === 0 ? emptyHead : headOf(entries.slice(0, place))
    const planted = chain(before, [{ type: 'error', data: { message: 'planted' } }], stamp).entries
    // Before the first, it is wrong by itself: a journal begins with the session's creation.
    return { damaged: entries.toSpliced(place, 0, ...planted), first: place === 0 ? 0 : place + 1 }
  },
  "another session's": (entries, place) => ({
    damaged: entries.map((entry, n) =>
      n === place ? rehashed({ ...entry, session_id: newId('ses') }) : entry,
    ),
    first: place,
  }),
  'cut off': (entries, place) => ({ damaged: entries.slice(0, place), first: place }),
}

const headOf = (entries: Entry[]): Head => {
  const last = entries.at(-1)
  return last ? { sequence: last.sequence, hash: last.hash } : emptyHead
}

describe('a journal', () => {
  it('verifies when nothing was done to it, and names its length and head', () => {
    fc.assert(
      fc.property(journal, ({ entries, head }) => {
        const found = verifyJournal(entries, { head, document: foldJournal(entries) })
        expect(found).toEqual({ ok: true, entries: entries.length, head })
      }),
    )
  })

  it.each(Object.entries(damages))(
    'does not verify with an entry %s, and names the first bad sequence',
    (_, damage) => {
      fc.assert(
        fc.property(journal, fc.nat(), ({ entries, head }, dice) => {
          const document = foldJournal(entries)
          const { damaged, first } = damage(entries, dice % entries.length)
          const found = verifyJournal(damaged, { head, document })
          expect(found.ok).toBe(false)
          expect(found.problem?.sequence).toBe(first)
        }),
      )
    },
  )

  it('does not verify against an item that says something else', () => {
    const { entries, head } = chain(emptyHead, [creation(id, 'team')], stamp)
    const document = { ...foldJournal(entries), intent: 'Something else' }
    expect(verifyJournal(entries, { head, document })).toMatchObject({ ok: false, problem: { sequence: 0 } })
  })

  it('comes back from its lines entry for entry, whatever text it holds', () => {
    fc.assert(
      fc.property(journal, ({ entries }) => {
        expect(fromLines(entries.map((entry) => `${toLine(entry)}\n`).join(''))).toEqual(entries)
        for (const entry of entries) expect(toLine(entry)).not.toContain('\n')
      }),
    )
  })

  it('writes the line of an entry as its canonical JSON, whatever the entry says beside its fact', () => {
    const data_ref = { artifact: 'data-a.json', bytes: 2, sha256: 'a'.repeat(64) }
    const contexts: Context[] = [
      {},
      { metadata: { 'dev.example.note': { hash: '"hash":"sha256:","id":"' } } },
      { causation_id: newId('evt'), correlation_id: newId('run'), branch: newId('brn') },
      { data_ref },
    ]
    const statements = contexts.map((context) => ({ ...creation(id, 'team'), context }))
    const { entries, lines } = chain(emptyHead, statements, stamp)
    expect(lines).toEqual(entries.map(toLine))
    expect(entries.map(hashOf)).toEqual(entries.map(({ hash }) => hash))
    expect(lines.map((line) => isIntact(line, fromLine(line)))).toEqual(contexts.map(() => true))
  })

  it('gives the same head whether facts are chained at once or one by one', () => {
    const facts: Fact[] = [creation(id, 'team'), { type: 'error', data: { message: 'a' } }]
    const once = chain(emptyHead, facts, stamp).entries
    const [first, second] = once
    if (!first || !second) throw new Error('two entries')
    expect(second.previous_hash).toBe(first.hash)
    expect(first.previous_hash).toBe(emptyHead.hash)
  })
})

describe('a replay', () => {
  const [first] = chain(emptyHead, [creation(id, 'team')], stamp).entries
  if (!first) throw new Error('an entry')

  it('stops at a record that it does not know, and names it', () => {
    const entry: Entry = { ...first, sequence: 1, type: 'session_teleported', kind: 'record', data: {} }
    const replay = () => foldJournal([first, entry])
    expect(replay).toThrow(ReplayError)
    expect(replay).toThrow(/session_teleported/)
    expect(replay).toThrow(expect.objectContaining({ problem: 'unknown_record', sequence: 1 }))
  })

  it('passes over an event that it does not know', () => {
    const entry: Entry = { ...first, sequence: 1, type: 'bird_sang', kind: 'event', data: { song: 'blue' } }
    expect(foldJournal([first, entry])).toEqual(foldJournal([first]))
  })

  it('stops at a known record whose data is not understood', () => {
    const entry: Entry = { ...first, sequence: 1, type: 'iteration_started', data: { n: 'one' } }
    expect(() => foldEntry(foldJournal([first]), entry)).toThrow(ReplayError)
  })

  it('does not begin with anything but the creation', () => {
    const entry: Entry = { ...first, type: 'iteration_started', data: { n: 1, max: 8 } }
    expect(() => foldJournal([entry])).toThrow(expect.objectContaining({ problem: 'invalid_creation' }))
    expect(() => foldJournal([])).toThrow(expect.objectContaining({ problem: 'empty' }))
  })
})

describe('text that was cut in the middle of a character', () => {
  it('is stored as it was hashed: the item and the fold of its journal agree', () => {
    const created = createItem(
      { team: 'team', id },
      creationChange(id, 'team', { intent: 'half \ud83d' }),
      at(0),
    )
    const item = changeItem(
      created,
      { actor: ada, facts: [{ type: 'session_failed', data: { failure_kind: 'error', error: '\udc00 x' } }] },
      at(1),
    )
    expect(item.document).toMatchObject({ intent: 'half \ufffd', error: '\ufffd x' })
    const bytes = Buffer.from(item.outbox.map(({ line }) => line).join('\n'))
    expect(canonical(foldJournal(fromLines(bytes.toString())))).toBe(canonical(item.document))
  })
})
