import fc from 'fast-check'
import { type Move, make } from './moves.ts'
import { comeToRest, type Ending, requireQuiet } from './rest.ts'
import type { Fault, Services } from './services.ts'
import { placeSession, type Roads, type Start, starts } from './starts.ts'
import { createWorld } from './world.ts'

/** One random interleaving. */
export type Run = { from: Start; dice: number; walk: Move[]; ending: Ending }

const dice = fc.nat({ max: 100_000 })
const oneOf = (...kinds: Move['kind'][]) => fc.constantFrom<Move['kind'][]>(...kinds)
const kind = fc.oneof(
  { weight: 30, arbitrary: oneOf('onward') },
  { weight: 9, arbitrary: oneOf('decide', 'stale', 'stray', 'race') },
  { weight: 9, arbitrary: oneOf('die', 'late', 'late', 'notice', 'worker') },
  { weight: 7, arbitrary: oneOf('machine', 'sweep', 'time', 'back', 'stop', 'restart', 'wake', 'wake') },
  { weight: 3, arbitrary: oneOf('cancel', 'create', 'twice', 'proceed', 'good') },
)
const someFault: fc.Arbitrary<Fault> = fc.record({
  kind: fc.constantFrom('crash', 'fail', 'meanwhile', 'stall'),
  call: fc.oneof(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 12 })),
  when: fc.constantFrom('before', 'after'),
})
const fault = fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: someFault })
const other = fc.oneof(
  { weight: 9, arbitrary: oneOf('decide', 'stray', 'worker', 'machine', 'die', 'sweep') },
  { weight: 1, arbitrary: oneOf('cancel') },
)

const move: fc.Arbitrary<Move> = fc.record({
  ...{ kind, dice, fault },
  meanwhile: fc.record({ kind: other, dice }),
})

/** Runs of a length that the walk's two ends leave something of. */
export const anyRun = (from: readonly Start[] = starts): fc.Arbitrary<Run> =>
  fc.record({
    from: fc.constantFrom(...from),
    dice: fc.noBias(dice),
    walk: fc.noBias(fc.array(move, { minLength: 4, maxLength: 16, size: 'max' })),
    ending: fc.constantFrom<Ending[]>('yes', 'no', 'cancel', 'cancel', 'cancel'),
  })

/** Makes one run on the services and throws what it violates, with what happened. */
export const perform = async (services: Services, roads: Roads, run: Run): Promise<void> => {
  const world = createWorld(services)
  try {
    await placeSession(world, roads, run.from, run.dice)
    for (const one of run.walk) {
      await make(world, one)
      if (world.reference.violations.length > 0) break
    }
    // Some of what was given up goes on at the worst time, and the rest never does.
    for (const wake of world.stalled.splice(run.dice % 2)) await wake()
    if (world.reference.violations.length === 0) await comeToRest(world, run.ending)
    if (world.reference.violations.length === 0) await requireQuiet(world, run.dice % 8 === 0)
  } finally {
    await services.clear()
  }
  const [violation] = world.reference.violations
  if (violation) throw new Error(`${violation.message}\n${world.trace.join('\n')}`)
}
