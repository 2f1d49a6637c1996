import { expect, it } from 'vitest'
import { allows, roleSchema } from '../../../lib/team/roles.ts'

it('lets a role do what the weaker ones may, and nothing of the stronger ones', () => {
  const granted = roleSchema.options.map((held) =>
    roleSchema.options.filter((needed) => allows(held, needed)),
  )
  expect(granted).toEqual([
    ['viewer'],
    ['viewer', 'operator'],
    ['viewer', 'operator', 'approver'],
    ['viewer', 'operator', 'approver', 'admin'],
  ])
})
