import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newId } from '../../../lib/ids.ts'
import type { Fact } from '../../../lib/journal/facts.ts'
import type { Document } from '../../../lib/session/document.ts'
import { needsYou } from '../../../lib/session/gates.ts'
import { objectKey } from '../../../lib/store/keys.ts'
import { sha } from '../../support/sessions.ts'
import { type Bench, gateFact, type Id, minute, startBench } from './bench.ts'

let bench: Bench
beforeAll(async () => {
  bench = await startBench()
}, 60_000)
afterAll(() => bench.close())

const bytes = 'a bundle, as far as anybody here can tell'
const hashed = createHash('sha256').update(bytes).digest('hex')
type Checkpoint = NonNullable<Document['checkpoint']>

/** A session at its review, and what was saved of its work. */
const atReview = async (
  checkpoint: Partial<Checkpoint> = {},
  { stored = bytes, reviewed = sha('d') }: { stored?: string | null; reviewed?: string } = {},
): Promise<Id> => {
  const saved = { id: 'one', commit: sha('c'), tree: sha('d'), bundle: 'one.bundle', bundle_sha256: hashed }
  const review = {
    ...{ review_id: newId('rev'), kind: 'change' as const, base: sha('a'), commit: sha('e') },
    ...{ tree: reviewed, contract_hash: '' },
  }
  const facts: Fact[] = [
    {
      type: 'workspace_prepared',
      data: { base: sha('a'), start_commit: sha('a'), tree: sha('b'), warnings: [] },
    },
    {
      type: 'diff_ready',
      data: {
        ...{ review, stat: { files: 1, insertions: 1, deletions: 0 }, patch_full_bytes: 1 },
        ...{ body_artifact: 'body', disclosed: [], checkpoint: { ...saved, ...checkpoint } },
      },
    },
    gateFact('approval'),
  ]
  const id = await bench.session('needs_approval', 'Review', { facts })
  if (stored !== null) await bench.platform.blobs.put(objectKey.bundle(id.team, id.id, 'one.bundle'), stored)
  return id
}
const restored = async (id: Id) => (await bench.types(id)).filter((type) => type === 'review_restored')
const unprovable: [string, Partial<Checkpoint>, Parameters<typeof atReview>[1], RegExp][] = [
  ['was changed', {}, { stored: 'other bytes' }, /was changed since/],
  ['is gone', {}, { stored: null }, /is gone/],
  ['was never saved', { bundle: null, bundle_sha256: null }, { stored: null }, /was not saved/],
  ['is of another tree', {}, { reviewed: sha('f') }, /not what was reviewed/],
]

describe('a review that outlives the service', () => {
  it('stays approvable when its saved work is shown to be what was reviewed, which is recorded once', async () => {
    const id = await atReview()
    const before = needsYou((await bench.item(id)).document)
    await bench.repair({ all: true })
    const { document } = await bench.item(id)
    expect(document).toMatchObject({ state: 'needs_approval', review_restored: true })
    expect(needsYou(document)).toEqual(before)
    expect(await restored(id)).toHaveLength(1)
    const told = (await bench.events(id)).find(({ type }) => type === 'review_restored')
    expect(told?.data).toMatchObject({ tree: sha('d'), proof: expect.stringContaining(hashed) })
    await bench.requireWhole(id)
  })

  it('stays approvable when nothing was changed, whatever was saved', async () => {
    const nothing = { tree: sha('b'), bundle: null, bundle_sha256: null }
    const id = await atReview(nothing, { stored: null, reviewed: sha('b') })
    await bench.repair({ all: true })
    expect((await bench.item(id)).document).toMatchObject({ state: 'needs_approval', review_restored: true })
  })

  it('stays approvable when its work was saved before hashes were recorded: the delivery compares it', async () => {
    const id = await atReview({ bundle_sha256: null }, {})
    await bench.repair({ all: true })
    const { document } = await bench.item(id)
    expect(document).toMatchObject({ state: 'needs_approval', review_restored: true })
  })

  it.each(unprovable)('is not approvable when the saved work %s', async (_, checkpoint, how, reason) => {
    const id = await atReview(checkpoint, how)
    await bench.round({ all: true })
    const { document } = await bench.item(id)
    expect(document).toMatchObject({ state: 'failed', failure_kind: 'infrastructure', gate: null })
    expect(document.error).toMatch(reason)
    expect(await restored(id)).toEqual([])
    await bench.requireWhole(id)
  })

  it('is not approvable any more when its work goes after it was shown to be there', async () => {
    const id = await atReview()
    await bench.round({ all: true })
    await bench.platform.blobs.removeAll(objectKey.session(id.team, id.id).concat('bundles/'))
    await bench.round({ all: true })
    expect((await bench.item(id)).document).toMatchObject({ state: 'failed', failure_kind: 'infrastructure' })
  })

  it('is not looked into while the service runs on', async () => {
    const id = await atReview({}, { stored: null })
    bench.pass(61 * minute)
    await bench.round()
    expect((await bench.item(id)).document.state).toBe('needs_approval')
  })

  it('is put off and not ended while its work can’t be read', async () => {
    const id = await atReview()
    const { sha256 } = bench.platform.blobs
    bench.platform.blobs.sha256 = () => Promise.reject(new Error('out of reach'))
    const { faults } = await bench.round({ all: true })
    bench.platform.blobs.sha256 = sha256
    expect(faults.map((fault) => fault.id)).toContain(id.id)
    expect((await bench.item(id)).document.state).toBe('needs_approval')
    await bench.round({ all: true })
    expect(await restored(id)).toHaveLength(1)
  })
})

describe('a review whose execution was stopped', () => {
  it('goes on in the next one with its proof, and a second stop finds that recorded', async () => {
    const id = await atReview()
    for (const attempt of [1, 2]) {
      await bench.stopExecution(`${id.id}-${attempt}`)
      await bench.round()
    }
    expect((await bench.item(id)).runtime.attempt).toBe(3)
    expect(await restored(id)).toHaveLength(1)
    expect(await bench.repairs(id)).toEqual(['execution', 'execution'])
    await bench.requireWhole(id)
  })

  it('ends with its session when nothing proves it, which is then settled by an execution', async () => {
    const id = await atReview({}, { stored: 'other bytes' })
    await bench.stopExecution(`${id.id}-1`)
    await bench.round()
    const { document, runtime } = await bench.item(id)
    expect(document).toMatchObject({ state: 'failed', step: 'Settle', failure_kind: 'infrastructure' })
    expect(runtime.attempt).toBe(2)
    expect(await bench.statusOf(`${id.id}-2`)).toBe('RUNNING')
    await bench.requireWhole(id)
  })
})
