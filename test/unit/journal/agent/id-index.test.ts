import fc from 'fast-check'
import { expect, it } from 'vitest'
import { IdIndex } from '../../../../lib/journal/agent/id-index.ts'
import { typeIdOf } from '../../../../lib/journal/agent/uuid.ts'

const ids = fc.uniqueArray(
  fc.uuid({ version: 7 }).map((uuid) => typeIdOf('evt', uuid)),
  { minLength: 2, maxLength: 200 },
)

it('knows every id that was added by its sequence, and no other', () => {
  fc.assert(
    fc.property(ids, (all) => {
      const [absent = '', ...present] = all
      const index = new IdIndex('evt')
      for (const [place, id] of present.entries()) {
        expect(index.get(id)).toBeUndefined()
        index.add(id, place * 3)
      }
      expect(present.map((id) => index.get(id))).toEqual(present.map((_, place) => place * 3))
      expect(index.get(absent)).toBeUndefined()
    }),
  )
})

it('gives back the ids that were added as of any sequence', () => {
  fc.assert(
    fc.property(ids, fc.nat({ max: 700 }), (all, sequence) => {
      const index = new IdIndex('evt')
      for (const [place, id] of all.entries()) index.add(id, place * 3)
      const expected = all.map((id, place) => [place * 3, id] as const).filter(([place]) => place <= sequence)
      expect([...index.upTo(sequence)]).toEqual(expected)
      expect(index.at(sequence)).toBe(expected.at(-1)?.[1])
      expect(index.at(-1)).toBeUndefined()
    }),
  )
})
