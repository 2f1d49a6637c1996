import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { makeRepository, temporaryFolder } from '../../repositories.ts'
import { mirrorOf } from './support.ts'

const nobody = 65534

test('a user without special rights is told what it cannot read, and removes read-only folders', async () => {
  const repository = makeRepository()
  const home = temporaryFolder()
  const mirror = await mirrorOf(repository.directory, home)
  const folder = temporaryFolder()
  const root = process.getuid?.() === 0
  for (const path of [home, folder, dirname(mirror)]) chmodSync(path, 0o755)
  if (root) chownSync(folder, nobody, nobody)
  const script = join(import.meta.dirname, 'unprivileged.ts')
  const output = execFileSync(process.execPath, [script, folder, mirror, repository.head], {
    // It becomes that user by itself once it is loaded: the checkout may lie where only its owner can read.
    env: { PATH: process.env.PATH, NODE_NO_WARNINGS: '1', ...(root ? { BECOME: String(nobody) } : {}) },
  })
  expect(JSON.parse(output.toString())).toEqual({
    unrecorded: [
      { path: 'secret', reason: 'unreadable' },
      { path: 'closed', reason: 'unreadable' },
    ],
    changed: ['README.md'],
    left: false,
  })
})

test('a user without special rights can write in no folder above a tree, and what it forces in there is removed', () => {
  const folder = temporaryFolder()
  const root = process.getuid?.() === 0
  if (root) chownSync(folder, nobody, nobody)
  const script = join(import.meta.dirname, 'unprivileged-places.ts')
  const output = execFileSync(process.execPath, [script, folder], {
    env: { PATH: process.env.PATH, NODE_NO_WARNINGS: '1', ...(root ? { BECOME: String(nobody) } : {}) },
  })
  expect(JSON.parse(output.toString())).toEqual({
    attempts: Array(4).fill('EACCES'),
    removed: 4,
    rights: Array(4).fill(0o500),
    foreign: root ? [join(folder, 'runs', 'of-root')] : [],
    left: 'ENOENT',
  })
})
