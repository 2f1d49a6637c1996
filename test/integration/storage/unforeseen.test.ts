import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const module = join(import.meta.dirname, '../../../infra/local/storage/unforeseen.ts')

/** A process under the policy in which something goes wrong that nobody awaits; it says `on` if it lives on. */
const meet = (wrong: string) =>
  spawnSync(
    process.execPath,
    [
      '--input-type=module',
      '-e',
      `import { surviveUnforeseen } from ${JSON.stringify(module)}
       surviveUnforeseen((line) => console.error(line))
       setTimeout(() => console.log('on'), 200)
       ${wrong}`,
    ],
    { encoding: 'utf8', timeout: 20_000 },
  )

test('a rejection that nobody awaits is logged, and the process goes on', () => {
  const { status, stdout, stderr } = meet("Promise.reject(new Error('lost'))")
  expect({ status, stdout }).toEqual({ status: 0, stdout: 'on\n' })
  expect(stderr).toContain('nobody awaited: Error: lost')
})

test('a full disk that is thrown past everybody is logged, and the process goes on', () => {
  const thrown = "setTimeout(() => { throw Object.assign(new Error('no space'), { code: 'ENOSPC' }) })"
  expect(meet(thrown)).toMatchObject({ status: 0, stdout: 'on\n' })
})

test('any other exception is logged and ends the process, for it may have left something half-done', () => {
  const { status, stdout, stderr } = meet("setTimeout(() => { throw new Error('broken') })")
  expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
  expect(stderr).toContain('nobody caught: Error: broken')
})
