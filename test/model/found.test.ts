import { expect, it } from 'vitest'
import { useServices } from './walks.ts'

const run = useServices()

/** Runs that failed once, shrunk; each is named for what went wrong. */

it('a gate’s step that the machine gave up on does not take the place of the one that it made instead', async () => {
  // Its decision went to a token that nobody waited for, and the session hung until the gate’s own time limit.
  await expect(
    run({
      ...{ from: 'Review', dice: 1, ending: 'yes' },
      walk: [
        { kind: 'machine', dice: 0 },
        { kind: 'machine', dice: 0, fault: { kind: 'stall', call: 2, when: 'before' } },
        { kind: 'time', dice: 1 },
        { kind: 'machine', dice: 0 },
        { kind: 'machine', dice: 0 },
        { kind: 'machine', dice: 0 },
        { kind: 'wake', dice: 0 },
        { kind: 'decide', dice: 0 },
      ],
    }),
  ).resolves.toBeUndefined()
})

it('a recovery that comes behind a later one counts no fault twice', async () => {
  await expect(
    run({
      ...{ from: 'Validate', dice: 1, ending: 'no' },
      walk: [
        { kind: 'machine', dice: 0 },
        { kind: 'machine', dice: 1, fault: { kind: 'crash', call: 1, when: 'before' } },
        { kind: 'machine', dice: 1, fault: { kind: 'stall', call: 3, when: 'before' } },
        { kind: 'time', dice: 1 },
        { kind: 'machine', dice: 0 },
        { kind: 'machine', dice: 1, fault: { kind: 'crash', call: 1, when: 'before' } },
        { kind: 'machine', dice: 0 },
        { kind: 'wake', dice: 0 },
      ],
    }),
  ).resolves.toBeUndefined()
})
