import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { type Deadline, Deadlines } from '../../../infra/local/states/deadlines.ts'

test('thousands of deadlines share one timer, and each acts once', async () => {
  const deadlines = new Deadlines()
  const acted: number[] = []
  const done = Promise.withResolvers<void>()
  const from = Date.now()
  const count = 5_000
  const alive = setInterval(() => {}, 1_000)
  for (let index = 0; index < count; index += 1) {
    deadlines.at(from + (index % 200), () => {
      acted.push(index)
      if (acted.length === count) done.resolve()
    })
  }
  await done.promise
  await sleep(20)
  clearInterval(alive)
  expect(acted.toSorted((a, b) => a - b)).toEqual(Array.from({ length: count }, (_, index) => index))
})

test('what one does to others that are due with it holds', async () => {
  const deadlines = new Deadlines()
  const acted: string[] = []
  const done = Promise.withResolvers<void>()
  const others: Deadline[] = []
  const alive = setInterval(() => {}, 1_000)
  const now = Date.now()
  deadlines.at(now, () => {
    acted.push('first')
    others[0]?.cancel()
    others[1]?.move(Date.now() + 50)
    deadlines.at(now, () => acted.push('added'))
  })
  others.push(deadlines.at(now, () => acted.push('cancelled')))
  others.push(
    deadlines.at(now, () => {
      acted.push('moved')
      done.resolve()
    }),
  )
  deadlines.at(now, () => acted.push('untouched'))
  await done.promise
  clearInterval(alive)
  expect(acted).toEqual(['first', 'untouched', 'added', 'moved'])
})
