import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { newId } from '../../../lib/ids.ts'
import { chain, emptyHead, entrySchema, fromLine, isIntact, toLine } from '../../../lib/journal/entry.ts'
import { isPlainEntry } from '../../../lib/journal/plain-entry.ts'
import { ada, at } from '../../support/sessions.ts'

const stamp = { sessionId: newId('ses'), time: at(0), actor: ada }
const message = 'a \u001f "quoted" text, größer → 1'
const [entry] = chain(emptyHead, [{ type: 'inference_waiting', data: { elapsed_secs: 10 } }], stamp).entries
const [said] = chain(emptyHead, [{ type: 'error', data: { message } }], stamp).entries
const [marked] = chain(
  emptyHead,
  [{ type: 'error', data: { message }, context: { metadata: { 'dev.example': { hash: 'x', id: 'y' } } } }],
  stamp,
).entries
if (!entry || !said || !marked) throw new Error('one fact is one entry')

describe('a line', () => {
  it.each(Object.entries({ entry, said, marked }))('is the one that was hashed: %s', (_, one) => {
    expect(isIntact(toLine(one), one)).toBe(true)
  })

  const swap = (line: string, from: string | RegExp, to: string): string => line.replace(from, () => to)
  const hash = /"hash":"sha256:[0-9a-f]+",/
  const moved = (line: string, to: RegExp): string =>
    line.replace(hash, '').replace(to, (found) => `${found}${hash.exec(line)?.[0]}`)

  it.each<[string, string]>([
    ['a space between its members', swap(toLine(said), ',"id"', ', "id"')],
    ['a space at its end', `${toLine(said)} `],
    ['a carriage return at its end', `${toLine(said)}\r`],
    ['an escape in the other case', swap(toLine(said), '\\u001f', '\\u001F')],
    ['a character as an escape', swap(toLine(said), 'größer', 'gr\\u00f6ßer')],
    ['an escaped slash', swap(toLine(marked), 'dev.example', 'dev\\u002eexample')],
    ['a number in another spelling', swap(toLine(entry), '"elapsed_secs":10', '"elapsed_secs":1e1')],
    ['a member that stands twice', swap(toLine(said), '{"actor"', '{"kind":"event","actor"')],
    ['its hash twice', swap(toLine(said), '"hash"', `"hash":"${said.hash}","hash"`)],
    ['its hash at its beginning', moved(toLine(said), /^\{/)],
    ['its hash behind its id', moved(toLine(said), /"id":"evt_[^"]+",/)],
    ['its hash with an escape in it', swap(toLine(said), '"hash":"sha256', '"hash":"\\u0073ha256')],
    ['another order of members', toLine(said).replace(/("kind":"event",)("previous_hash":"[^"]+",)/, '$2$1')],
  ])('with %s means the same, and is not the one that was hashed', (_, line) => {
    expect([entry, said, marked]).toContainEqual(fromLine(line))
    expect(isIntact(line, fromLine(line))).toBe(false)
  })
})

/** Values that some member might take for its own. */
const odd = fc.oneof(
  fc.json().map((text): unknown => JSON.parse(text)),
  fc.constantFrom<unknown>('main', newId('evt'), newId('ses'), newId('brn'), newId('run'), newId('cmd')),
  fc.constantFrom<unknown>('record', 'event', at(1), '2030-01-01T00:00:00Z', 'evt_0', -1, 0, 7, 1.5, 2 ** 53),
  fc.constantFrom<unknown>(
    { kind: 'worker', id: 'w' },
    { kind: 'person', id: 1 },
    { kind: 'nobody', id: 'n' },
  ),
  fc.constantFrom<unknown>({ kind: 'system', id: 's', of: 1 }, {}, [], null, { 'dev.example': 1 }),
)
const member = fc.oneof(
  fc.constantFrom(...Object.keys(entrySchema.shape)),
  fc.constantFrom('planted', '__proto__', 'constructor'),
)
const changes = fc.array(fc.tuple(member, fc.option(odd, { nil: undefined })), { minLength: 1, maxLength: 2 })

describe('the quick reading of an entry', () => {
  it('says yes to exactly what the schema accepts, where nothing is in it that only the schema reads', () => {
    const answers = { yes: 0, no: 0 }
    fc.assert(
      fc.property(changes, (changes) => {
        const members = new Map<string, unknown>(Object.entries(said))
        for (const [name, value] of changes)
          if (value === undefined) members.delete(name)
          else members.set(name, value)
        const text = `{${[...members].map(([name, value]) => `"${name}":${JSON.stringify(value)}`).join()}}`
        const value: unknown = JSON.parse(text)
        const read = entrySchema.safeParse(value)
        const isPlain = isPlainEntry(value)
        const rare = ['metadata', 'causation_id', 'data_ref'].some((name) => members.has(name))
        expect(isPlain).toBe(read.success && !rare)
        if (isPlain) expect(read.data).toEqual(value)
        answers[isPlain ? 'yes' : 'no'] += 1
      }),
      { numRuns: 3000 },
    )
    expect(answers.yes).toBeGreaterThan(50)
    expect(answers.no).toBeGreaterThan(50)
  })
})
