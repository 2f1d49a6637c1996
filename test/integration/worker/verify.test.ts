import { expect, test } from 'vitest'
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
  return { ...session, verify }
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
