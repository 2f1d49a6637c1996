import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { CheckResult } from '../../../lib/contract/schema.ts'
import { temporaryFolder } from '../../repositories.ts'
import { contractOf } from './commands.ts'
import { outcome, startSession } from './support.ts'

/** A user with the data folder at its default place. */
const aUser = () => {
  const userHome = temporaryFolder()
  const home = join(userHome, '.local', 'state', 'gatehouse')
  mkdirSync(home, { recursive: true })
  return { home, userHome, runs: join(home, 'runs') }
}

const needsPlanted = contractOf('node -e "require(\'planted\')"')

/** Puts a module where the folders above the tree have theirs, whatever rights they have. */
const plantIn = (...folders: string[]): string =>
  folders
    .map((folder) => {
      const module = `${folder}/planted`
      return `chmod u+w "${folder}/.." 2>/dev/null; mkdir -p "${module}" && echo > "${module}/index.js"`
    })
    .join('\n')

const verdicts = (results: readonly CheckResult[]) => results.map(({ verdict, reason }) => [verdict, reason])

test('what an engine puts above its tree makes neither its own work green nor that of another repository', async () => {
  const user = aUser()
  const places = ['$PWD/..', '$PWD/../..', '$PWD/../../..', user.runs].map(
    (folder) => `${folder}/node_modules`,
  )
  const engine_command = plantIn(...places, '$HOME/.node_modules', '$HOME/.node_libraries')
  const first = await startSession({ engine_command, contract: needsPlanted }, user)
  const start = await first.prepare()
  const { checkpoint } = outcome(await first.run('Code', start), 'Code')
  expect(existsSync(join(user.runs, 'node_modules', 'planted'))).toBe(true)
  expect(existsSync(join(user.userHome, '.node_modules', 'planted'))).toBe(true)
  const work = { ...start, checkpoint }
  const validated = outcome(await first.run('Validate', work), 'Validate')
  expect(verdicts(validated.results)).toEqual([['failed', 'suspect_environment']])
  expect(verdicts(outcome(await first.run('Verify', work), 'Verify').results)).toEqual([
    ['failed', 'suspect_environment'],
  ])
  const cleared = first.api.state.events.flatMap(({ type, data }) =>
    type === 'surroundings_cleared' ? data?.paths : [],
  )
  expect(cleared).toContain(join(user.runs, 'node_modules'))
  expect(cleared).toContain(join(user.runs, first.api.sessionId, 'node_modules'))

  // The first is still at work, with what it planted since.
  outcome(await first.run('Code', work), 'Code')
  const second = await startSession({ contract: needsPlanted }, user)
  const baseline = outcome(await second.run('Baseline', await second.prepare()), 'Baseline')
  expect(verdicts(baseline.results)).toEqual([['failed', 'suspect_environment']])
})

test('what stands in a folder that is not ours is no verdict: it is named, and when it is gone the check runs', async () => {
  const user = aUser()
  const session = await startSession({ contract: contractOf('true') }, user)
  const start = await session.prepare()
  const planted = join(user.userHome, 'node_modules')
  mkdirSync(planted)
  const hindered = outcome(await session.run('Baseline', start), 'Baseline')
  expect(verdicts(hindered.results)).toEqual([['could_not_run', 'foreign_surroundings']])
  expect(hindered.results[0]?.output_head).toContain(planted)
  const setUp = await session.run('Baseline', {
    ...start,
    contract: { ...contractOf('true'), setup: ['touch ran'] },
  })
  expect(setUp).toMatchObject({
    outcome: 'Baseline',
    setup_problem: expect.stringContaining('could not start'),
  })
  expect(session.api.state.events).toContainEqual({
    type: 'setup_completed',
    data: expect.objectContaining({ ok: false, output_head: expect.stringContaining(planted) }),
  })
  rmSync(planted, { recursive: true })
  const clear = outcome(await session.run('Baseline', start), 'Baseline')
  expect(verdicts(clear.results)).toEqual([['passed', 'ok']])
})

test('a check that removes its home, or makes a part of it unreadable, hinders no other', async () => {
  const contract = contractOf('mkdir -m 0 "$HOME/closed"', 'rm -rf "$HOME"', 'true')
  const session = await startSession({ contract }, aUser())
  const baseline = outcome(await session.run('Baseline', await session.prepare()), 'Baseline')
  expect(verdicts(baseline.results)[2]).toEqual(['passed', 'ok'])
})

test('setup and checks share a home of their own; what an engine puts there is gone, and the setup is done again', async () => {
  const user = aUser()
  writeFileSync(join(user.userHome, '.gitconfig'), '[user]\n\tname = Ada\n')
  const contract = {
    ...contractOf(
      'test -e "$HOME/set-up" && test -e "$TMPDIR/set-up" && ! test -e "$HOME/.npmrc" && ! git config --global user.name',
    ),
    setup: ['test -z "$(ls -A "$HOME")" && touch "$HOME/set-up" "$TMPDIR/set-up"'],
  }
  const engine_command = 'test -e "$HOME/.gitconfig" || exit 1; echo x > ../home/.npmrc'
  const session = await startSession({ engine_command, contract }, user)
  const start = await session.prepare()
  expect(verdicts(outcome(await session.run('Baseline', start), 'Baseline').results)).toEqual([
    ['passed', 'ok'],
  ])
  const ran = outcome(await session.run('Code', start), 'Code')
  expect(ran.status).toBe('finished')
  const work = { ...start, checkpoint: ran.checkpoint }
  for (const _ of [1, 2])
    expect(verdicts(outcome(await session.run('Validate', work), 'Validate').results)).toEqual([
      ['passed', 'ok'],
    ])
  outcome(await session.run('Code', work), 'Code')
  expect(verdicts(outcome(await session.run('Validate', work), 'Validate').results)).toEqual([
    ['passed', 'ok'],
  ])
  const setups = session.api.state.events.filter(({ type }) => type === 'setup_completed')
  expect(setups).toHaveLength(3)
})
