import fc from 'fast-check'
import { expect, it } from 'vitest'
import { idPrefixes, newId } from '../../../../lib/ids.ts'
import { v7IdSchema } from '../../../../lib/journal/agent/scalars.ts'
import { isUuidV7, typeIdOf, uuidOf } from '../../../../lib/journal/agent/uuid.ts'

it('every UUIDv7 has its TypeID, and back', () => {
  fc.assert(
    fc.property(fc.uuid({ version: 7 }), fc.constantFrom(...idPrefixes), (uuid, prefix) => {
      const id = typeIdOf(prefix, uuid)
      expect(uuidOf(id)).toBe(uuid)
      expect(v7IdSchema(prefix).safeParse(id).success).toBe(true)
    }),
  )
})

it('a TypeID is taken exactly if its UUID is of version 7', () => {
  fc.assert(
    fc.property(fc.uuid(), (uuid) => {
      expect(v7IdSchema('evt').safeParse(typeIdOf('evt', uuid)).success).toBe(isUuidV7(uuid))
    }),
  )
})

it('fresh ids are of version 7, and another prefix is another id', () => {
  expect(isUuidV7(uuidOf(newId('call')))).toBe(true)
  expect(v7IdSchema('call').safeParse(newId('call')).success).toBe(true)
  expect(v7IdSchema('call').safeParse(newId('apr')).success).toBe(false)
})
