import { expect, test } from 'vitest'
import { newId } from '../../../lib/ids.ts'
import { contractOf } from './commands.ts'
import { outcome, startSession } from './support.ts'

const nomination = { kind: 'premise_wrong', summary: 'It is right as it is', evidence: 'a.txt' } as const

const red = contractOf('test -e done', 'test -e never')

/** A session whose engine has run once. */
const worked = async (engine_command: string) => {
  const session = await startSession({ engine_command, contract: red })
  const start = await session.prepare()
  const { checkpoint } = outcome(await session.run('Code', start), 'Code')
  const verify = async (more = {}) =>
    outcome(await session.run('Verify', { ...start, checkpoint, ...more }), 'Verify')
  return { ...session, start, checkpoint, verify }
}

test('a review is prepared when all that is red was let through by a person', async () => {
  const { verify } = await worked('echo yes > done')
  expect((await verify()).review).toBeNull()
  expect((await verify({ accepted_red: ['check-0'] })).review).toBeNull()
  const { review, results } = await verify({ accepted_red: ['check-1'] })
  expect(results.map(({ verdict }) => verdict)).toEqual(['passed', 'failed'])
  expect(review).toMatchObject({ kind: 'change', finding: null, stat: { files: 1 } })
})

test('an unchanged tree with a nomination that stands is a finding of the engine’s, whatever is red', async () => {
  const { verify } = await worked('true')
  expect((await verify()).review).toBeNull()
  expect((await verify({ nomination, mutated: true })).review).toBeNull()
  expect((await verify({ nomination })).review).toMatchObject({
    ...{ kind: 'finding', finding: nomination, stat: { files: 0 } },
  })
})

test('a nomination is nothing where files were changed', async () => {
  const { verify } = await worked('echo yes > other')
  expect((await verify({ nomination })).review).toBeNull()
})

test('an unchanged tree without a nomination is what the runtime saw, and says what was let through', async () => {
  const { verify } = await worked('true')
  const green = await verify({ contract: contractOf('test -e a.txt') })
  expect(green.review?.finding).toMatchObject({
    kind: 'already_satisfied',
    summary: 'Nothing was changed, and every check of the contract is green.',
  })
  const accepted = await verify({ accepted_red: ['check-0', 'check-1'] })
  expect(accepted.review?.finding?.summary).toContain('check-0, check-1')
})

test('a base that moved since is told at delivery, and the branch is made on the one that was reviewed', async () => {
  const { verify, run, start, checkpoint, repository } = await worked('echo yes > done')
  const { review } = await verify({ accepted_red: ['check-1'] })
  if (review === null) throw new Error('nothing to review')
  const { kind, base, commit, tree } = review
  const review_identity = { review_id: newId('rev'), kind, base, commit, tree, contract_hash: 'sha256:x' }
  const deliver = async (more = {}) =>
    outcome(await run('Deliver', { ...start, checkpoint, review_identity, ...more }), 'Deliver').delivered
  const still = await deliver()
  expect(still).toMatchObject({ ok: true, commit })
  expect(still).not.toHaveProperty('base_moved_to')
  repository.git('commit', '--quiet', '--allow-empty', '-m', 'Meanwhile')
  const moved = repository.git('rev-parse', 'HEAD').trim()
  expect(await deliver()).toMatchObject({ ok: true, commit, base_moved_to: moved })
  expect(await deliver({ requested_base: base })).not.toHaveProperty('base_moved_to')
})

test.each(['Validate', 'Verify'] as const)(
  'a setup that fails at %s is a fault that shows the work',
  async (step) => {
    const { run, start, checkpoint, api } = await worked('echo yes > done')
    const contract = { ...red, setup: ['echo no answer; exit 7'] }
    const result = await run(step, { ...start, checkpoint, contract })
    const { detail } = outcome(result, 'setup_failed')
    expect(detail).toContain('“echo no answer; exit 7” exited with 7: no answer')
    const patch = /artifact (work-\S+\.patch);/.exec(detail)?.[1]
    expect(api.state.store.get(`artifact/${patch}`)?.toString()).toContain('+yes\n')
  },
)
