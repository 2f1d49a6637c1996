import { expect, it } from 'vitest'
import { aDelivery } from './results.ts'
import { setOutTo } from './road.ts'

it('a base that moved is told with the delivery', () => {
  const road = setOutTo('Deliver')
  const moved = 'f'.repeat(40)
  if (!aDelivery.delivered.ok) throw new Error('no delivery')
  road.work({ ...aDelivery, delivered: { ...aDelivery.delivered, base_moved_to: moved } })
  expect(road.document).toMatchObject({ state: 'merged', base_moved_to: moved })
  expect(road.told('merge_completed')).toMatchObject([{ base_moved_to: moved }])
  expect(setOutTo('Settle').document.base_moved_to).toBeNull()
})
