import { mkdtemp, rm, writeFile } from 'node:fs/promises'
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
})
afterAll(() => rm(tree, { recursive: true, force: true }))

it.each([
  ['python3 -m nosuchrunner', 'could_not_run', 'runner_missing'],
  ['python3 -m nosuchrunner -q tests', 'could_not_run', 'runner_missing'],
  ['python3 -m needs', 'failed', 'exit_code'],
  ['node test/nosuch.js', 'could_not_run', 'runner_missing'],
  ['node ./nosuch.js', 'could_not_run', 'runner_missing'],
  ['node needs.js', 'failed', 'exit_code'],
  ['echo "python3: No module named x"; exit 1', 'failed', 'exit_code'],
])('%s: %s', async (command, verdict, reason) => {
  const { results } = await evaluateContract({
    ...{ contract: aContract([{ command }]), tree, outputDirectory: tree, artifactPrefix: 'x' },
    ...{ env: { PATH: process.env.PATH ?? '' }, deadlineAt: null, now: Date.now, marker: tree },
    ...{ phase: 'gate', captures: {} },
  })
  expect(results).toMatchObject([{ verdict, reason }])
})
