import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { evaluateContract } from '../../../lib/contract/evaluate.ts'
import { aContract } from '../../unit/contract/contracts.ts'

let tree: string
beforeAll(async () => {
  tree = await mkdtemp(path.join(tmpdir(), 'runner-'))
  await writeFile(path.join(tree, 'needs.js'), "require('./gone.js')\n")
  await writeFile(path.join(tree, 'needs.py'), 'import gone\n')
  await writeFile(path.join(tree, 'needs-package.js'), "require('@gone/gone')\n")
  await writeFile(path.join(tree, 'Makefile'), 'all: gone\nrun:\n\tnosuch-program\n')
  const scripts = { fails: 'echo no; exit 1', forged: `echo 'npm error Missing script: "forged"'; exit 1` }
  await writeFile(path.join(tree, 'package.json'), JSON.stringify({ scripts }))
  await mkdir(path.join(tree, 'mine'))
})
afterAll(() => rm(tree, { recursive: true, force: true }))

const runIn = async (command: string) => {
  const { results } = await evaluateContract({
    ...{ contract: aContract([{ command }]), tree, outputDirectory: tree, artifactPrefix: 'y' },
    ...{ env: { PATH: process.env.PATH ?? '', HOME: tree }, deadlineAt: null, now: Date.now, marker: tree },
    ...{ phase: 'gate', captures: {} },
  })
  return results[0]
}

it.each([
  ['python3 -m nosuchrunner', 'could_not_run', 'runner_missing'],
  ['python3 -m nosuchrunner -q tests', 'could_not_run', 'runner_missing'],
  ['python3 -m needs', 'failed', 'suspect_environment'],
  ['node test/nosuch.js', 'could_not_run', 'runner_missing'],
  ['node ./nosuch.js', 'could_not_run', 'runner_missing'],
  ['node needs.js', 'failed', 'exit_code'],
  ['echo "python3: No module named x"; exit 1', 'failed', 'suspect_environment'],
  ['python3 nosuch.py', 'could_not_run', 'runner_missing'],
  ['node --test nosuch.js', 'could_not_run', 'runner_missing'],
  ['npm run nosuch', 'could_not_run', 'runner_missing'],
  ['npm test', 'could_not_run', 'runner_missing'],
  ['npm run fails', 'failed', 'exit_code'],
  ['npm run forged', 'failed', 'suspect_environment'],
  ['npx --offline nosuch-package', 'could_not_run', 'runner_missing'],
  ['make nosuch', 'could_not_run', 'runner_missing'],
  ["bash -c 'make nosuch'", 'could_not_run', 'runner_missing'],
  ['make all', 'failed', 'suspect_environment'],
  ['make run', 'failed', 'suspect_environment'],
  ['bash -c nosuch-program', 'could_not_run', 'command_not_found'],
  ["bash -c 'nosuch-program; exit 1'", 'failed', 'suspect_environment'],
  ['node needs-package.js', 'failed', 'suspect_environment'],
  ["python3 -c 'import mine.more'", 'failed', 'exit_code'],
])('%s: %s', async (command, verdict, reason) => {
  expect(await runIn(command)).toMatchObject({ verdict, reason })
})

it('a red carries the line that raises the suspicion, and a digest of what it printed', async () => {
  const one = await runIn('echo $(date +%N) ms; pwd; sh -c "nosuch-program; exit 3"')
  expect(one).toMatchObject({ exit_code: 3, suspicion: 'sh: 1: nosuch-program: not found' })
  const two = await runIn('echo 12 ms; pwd; sh -c "nosuch-program; exit 3"')
  expect(two?.output_digest).toBe(one?.output_digest)
  expect(one?.output_digest).toMatch(/^[0-9a-f]{64}$/)
  expect(await runIn('true')).not.toHaveProperty('output_digest')
})
