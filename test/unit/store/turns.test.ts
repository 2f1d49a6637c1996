import { describe, expect, it } from 'vitest'
import { createTurns } from '../../../lib/store/turns.ts'

const long = 60_000

describe('turns', () => {
  it('run one after another under one key, in the order of asking, whatever the ones before come to', async () => {
    const inTurn = createTurns(long)
    const seen: string[] = []
    const gate = Promise.withResolvers<void>()
    const first = inTurn('a', long, async () => {
      seen.push('first begins')
      await gate.promise
      seen.push('first ends')
      throw new RangeError('no')
    })
    const second = inTurn('a', long, async () => seen.push('second'))
    const third = inTurn('a', long, async () => seen.push('third'))
    const elsewhere = await inTurn('b', long, async () => [...seen])
    expect(elsewhere).toEqual({ result: ['first begins'] })
    gate.resolve()
    await expect(first).rejects.toThrow(RangeError)
    await Promise.all([second, third])
    expect(seen).toEqual(['first begins', 'first ends', 'second', 'third'])
  })

  it('are given up when they do not come in time, and let nobody past the one that still runs', async () => {
    const inTurn = createTurns(long)
    const gate = Promise.withResolvers<void>()
    const seen: string[] = []
    const hangs = inTurn('a', long, async () => {
      await gate.promise
      seen.push('hung')
    })
    expect(await inTurn('a', 5, async () => seen.push('late'))).toBeNull()
    const patient = inTurn('a', long, async () => seen.push('patient'))
    expect(await inTurn('a', 5, async () => seen.push('late'))).toBeNull()
    expect(seen).toEqual([])
    gate.resolve()
    await Promise.all([hangs, patient])
    expect(seen).toEqual(['hung', 'patient'])
    expect(await inTurn('a', 0, async () => 'free')).toEqual({ result: 'free' })
  })

  it('of one that hangs is waited for only so long, and it ends beside those that came behind', async () => {
    const inTurn = createTurns(5)
    const gate = Promise.withResolvers<void>()
    const hangs = inTurn('a', long, () => gate.promise)
    expect(await inTurn('a', long, async () => 'went on')).toEqual({ result: 'went on' })
    gate.resolve()
    expect(await hangs).toEqual({ result: undefined })
  })
})
