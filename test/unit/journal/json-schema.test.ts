import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Entry, entrySchema } from '../../../lib/journal/entry.ts'
import { factSchema } from '../../../lib/journal/facts.ts'
import { journalJsonSchema } from '../../../lib/journal/json-schema.ts'
import { newSession } from '../../support/sessions.ts'

const schema = z.fromJSONSchema({ ...journalJsonSchema() })
const [created, selected] = newSession().outbox.map(({ line }) => entrySchema.parse(JSON.parse(line)))
if (!created || !selected) throw new Error('a new session has entries')
const data_ref = { artifact: 'data-1.json', bytes: 9, sha256: '0'.repeat(64) }

describe('the JSON Schema of a journal', () => {
  it('names every type of fact, and speaks of itself alone', () => {
    const types = factSchema.options.map((option) => option.shape.type.value)
    expect(Object.keys(Object(journalJsonSchema().$defs)).toSorted()).toEqual(types.toSorted())
    for (const [, target] of JSON.stringify(journalJsonSchema()).matchAll(/"\$ref":"([^"]+)"/g))
      expect(types).toContain(target?.replace('#/$defs/', ''))
  })

  const accepted: [string, Entry][] = [
    ['a record', created],
    ['an event', selected],
    ['a record whose data is elsewhere', { ...created, data: {}, data_ref }],
    ['an event that it does not know', { ...selected, type: 'unheard_of', data: { any: [1] } }],
  ]
  it.each(accepted)('accepts %s', (_, entry) => {
    expect(schema.safeParse(entry).success).toBe(true)
    expect(entrySchema.safeParse(entry).success).toBe(true)
  })

  it.each([
    ['a record that it does not know', { ...created, type: 'unheard_of' }],
    ['an event as a record', { ...selected, kind: 'record' }],
    ['a record as an event', { ...created, kind: 'event' }],
    ['data of another type', { ...created, data: selected.data }],
    ['a member of the wrong kind', { ...created, data: { ...created.data, intent: 5 } }],
    ['a member too many', { ...selected, data: { ...selected.data, more: 1 } }],
    ['no data', { ...created, data: {} }],
    ['data both here and elsewhere', { ...created, data_ref }],
    ['a sequence below zero', { ...created, sequence: -1 }],
    ['an id of another kind', { ...created, session_id: created.id }],
    ['a time without milliseconds', { ...created, time: '2030-01-01T00:00:00Z' }],
  ])('refuses %s', (_, entry) => {
    expect(schema.safeParse(entry).success).toBe(false)
  })
})
