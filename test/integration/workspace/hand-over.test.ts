import { execFileSync } from 'node:child_process'
import { chmodSync, readdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { deliverBranch } from '../../../lib/workspace/delivery.ts'
import { git, makeRepository, writeFiles } from '../../repositories.ts'
import { localRepository, open } from './support.ts'

const isRoot = process.getuid?.() === 0
const nobody = 65534
const branch = 'gatehouse/abcd1234'

const deliverTo = async (path: string) => {
  const { workspace, base } = await open()
  writeFiles(workspace.tree, { 'made.txt': 'made\n' })
  const { tree } = await workspace.capture()
  const date = new Date('2026-01-01')
  const commit = await workspace.squash({ tree, intent: 'Make it', sessionId: 'ses_1', date })
  const repository = localRepository(path)
  return () => deliverBranch({ repository, gitDirectory: workspace.gitDirectory, base, commit, branch })
}

const files = (directory: string) =>
  readdirSync(directory, { withFileTypes: true, recursive: true }).map((entry) => {
    const path = join(entry.parentPath, entry.name)
    const { uid, gid, mode } = statSync(path)
    return { path, owner: `${uid}:${gid}`, mode: (mode & 0o7777).toString(8) }
  })

/** A repository of another user. */
const foreign = (shared?: string) => {
  const { directory } = makeRepository()
  if (shared !== undefined) git(directory, 'config', 'core.sharedRepository', shared)
  execFileSync('chown', ['-R', `${nobody}:${nobody}`, directory])
  chmodSync(dirname(directory), 0o755)
  return directory
}

test.skipIf(!isRoot)('all that a delivery makes in a repository belongs to whom that belongs', async () => {
  const directory = foreign()
  const deliver = await deliverTo(directory)
  expect(await deliver()).toMatchObject({ status: 'delivered' })
  expect(files(directory).filter(({ owner }) => owner !== `${nobody}:${nobody}`)).toEqual([])

  // Left over by a delivery that was interrupted: its repeat makes it good.
  execFileSync('chown', ['-R', '0:0', join(directory, '.git', 'refs', 'heads', 'gatehouse')])
  expect(await deliver()).toMatchObject({ status: 'already_there' })
  expect(files(directory).filter(({ owner }) => owner !== `${nobody}:${nobody}`)).toEqual([])

  const asOwner = { cwd: directory, uid: nobody, gid: nobody, env: { PATH: process.env.PATH, HOME: '/' } }
  execFileSync('git', ['branch', '--quiet', '-D', branch], { ...asOwner, stdio: 'ignore' })
  execFileSync('git', ['branch', 'gatehouse/mine'], asOwner)
  execFileSync('git', ['gc', '--quiet', '--prune=now'], asOwner)
})

test.skipIf(!isRoot)('a file that only looks like ours is not given away', async () => {
  const directory = foreign()
  const deliver = await deliverTo(directory)
  await deliver()
  const heads = join(directory, '.git', 'refs', 'heads', 'gatehouse')
  const secret = join(dirname(directory), 'secret')
  execFileSync('sh', ['-c', `cp "$1" "$2" && rm "$1" && ln "$2" "$1"`, 'sh', join(heads, 'abcd1234'), secret])
  expect(await deliver()).toMatchObject({ status: 'already_there' })
  expect(statSync(secret).uid).toBe(0)
})

test('files are as open as the repository wants them (core.sharedRepository)', async () => {
  const { directory } = makeRepository()
  git(directory, 'config', 'core.sharedRepository', '0660')
  const before = new Set(files(directory).map(({ path }) => path))
  const deliver = await deliverTo(directory)
  expect(await deliver()).toMatchObject({ status: 'delivered' })
  const made = files(join(directory, '.git')).filter(({ path }) => !before.has(path))
  const modes = (end: RegExp) => made.filter(({ path }) => end.test(path)).map(({ mode }) => mode)
  expect(modes(/\.(pack|idx|rev)$/)).toEqual(made.filter(({ path }) => /pack-/.test(path)).map(() => '440'))
  expect(modes(/\.pack$/)).toEqual(['440'])
  expect(modes(/heads\/gatehouse$/)).toEqual(['2770'])
  expect(modes(/heads\/gatehouse\/abcd1234$/)).toEqual(['660'])
})
