import {
  chmodSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { newId } from '../../../lib/ids.ts'
import { clearLeftOvers, makeLaunch, removeLaunch } from '../../../lib/workspace/surroundings/launch.ts'
import { isLookedUp } from '../../../lib/workspace/surroundings/names.ts'
import { chooseRunsRoot, runsCandidates } from '../../../lib/workspace/surroundings/root.ts'
import { temporaryFolder } from '../../repositories.ts'

const uid = process.getuid?.() ?? 0

test.each([
  ...['package.json', 'node_modules', '.git', 'tox.ini', 'pyproject.toml', 'Cargo.toml', 'go.work', '.npmrc'],
  ...[
    '.editorconfig',
    'vitest.config.ts',
    'eslint.config.mjs',
    'tsconfig.base.json',
    '.eslintrc.json',
    '.eslintrc',
  ],
  ...[
    '.prettierrc',
    '.mocharc.yml',
    'conftest.py',
    'rust-toolchain.toml',
    '.tool-versions',
    'Gemfile',
    'pom.xml',
  ],
])('tools look for %s', (name) => expect(isLookedUp(name)).toBe(true))

test.each([
  '.bashrc',
  '.zshrc',
  '.gitconfig',
  '.cargo',
  '.config',
  '.cache',
  'Makefile',
  'admin-token',
  'worker.mjs',
  'app.log',
])('nothing looks upwards for %s', (name) => expect(isLookedUp(name)).toBe(false))

test('the home has the runs when nothing above it is found from below, and a link to it is no way around that', async () => {
  const above = temporaryFolder()
  const home = join(above, 'home')
  const candidates = [join(home, 'runs'), join(above, 'other')]
  expect(await chooseRunsRoot(candidates, uid)).toEqual({ runs: join(home, 'runs'), refused: [] })
  expect(statSync(join(home, 'runs')).mode & 0o777).toBe(0o500)
  // A home of the old kind: a folder of a project.
  writeFileSync(join(home, 'package.json'), '{}')
  const moved = await chooseRunsRoot(candidates, uid)
  expect(moved.runs).toBe(join(above, 'other'))
  expect(moved.refused).toEqual([
    { folder: join(home, 'runs'), why: expect.stringContaining(join(home, 'package.json')) },
  ])
  const link = join(temporaryFolder(), 'link')
  symlinkSync(home, link)
  expect((await chooseRunsRoot([join(link, 'runs'), join(above, 'other')], uid)).runs).toBe(
    join(above, 'other'),
  )
})

test('no start without a root: each place is named with what is in its way', async () => {
  const above = temporaryFolder()
  mkdirSync(join(above, 'node_modules'))
  writeFileSync(join(above, 'file'), '')
  const start = chooseRunsRoot([join(above, 'a', 'runs'), join(above, 'file')], uid)
  await expect(start).rejects.toThrow(
    `${join(above, 'a', 'runs')}: tools that work there would find ${above}/node_modules`,
  )
  await expect(start).rejects.toThrow(`${join(above, 'file')}: `)
  await expect(chooseRunsRoot([join(above, 'b')], uid + 1)).rejects.toThrow('it belongs to another user')
})

test('places for everybody are told apart by user and home', () => {
  const names = [runsCandidates('/a', 1), runsCandidates('/b', 1), runsCandidates('/a', 2)].map(
    (all) => all[1],
  )
  expect(new Set(names).size).toBe(3)
  for (const name of names) expect(name).toMatch(/^\/var\/tmp\/gatehouse-/)
})

test('launches come and go side by side in a root that is read-only, also with folders that were made unwritable', async () => {
  const { runs } = await chooseRunsRoot([join(temporaryFolder(), 'runs')], uid)
  const ids = Array.from({ length: 12 }, () => newId('ses'))
  const launches = await Promise.all(ids.map((id) => makeLaunch(runs, id, newId('wrk'))))
  for (const { work, folder, trees } of launches) {
    expect([folder, trees].map((path) => statSync(path).mode & 0o777)).toEqual([0o500, 0o500])
    mkdirSync(join(work, 'a'))
    writeFileSync(join(work, 'a', 'b'), '')
    chmodSync(join(work, 'a'), 0o500)
  }
  await Promise.all(ids.map((id) => removeLaunch(runs, id)))
  expect(readdirSync(realpathSync(runs))).toEqual([])
  expect(statSync(runs).mode & 0o777).toBe(0o500)
})

test('what belongs to no launch that lives is cleared from the root and named', async () => {
  const { runs } = await chooseRunsRoot([join(temporaryFolder(), 'runs')], uid)
  const [alive, dead] = [newId('ses'), newId('ses')]
  await makeLaunch(runs, alive, newId('wrk'))
  await makeLaunch(runs, dead, newId('wrk'))
  chmodSync(runs, 0o700)
  mkdirSync(join(runs, 'node_modules'))
  const { removed, problems } = await clearLeftOvers(runs, async (id) => id === alive)
  expect(removed.sort()).toEqual(['node_modules', dead].sort())
  expect(problems).toEqual([])
  expect(readdirSync(runs)).toEqual([alive])
  await removeLaunch(runs, alive)
})
