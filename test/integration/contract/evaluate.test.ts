import { hash } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { capturesSchema } from '../../../lib/contract/capture.ts'
import { type Evaluation, evaluateContract, runSetup } from '../../../lib/contract/evaluate.ts'
import { type Contract, checkResultSchema } from '../../../lib/contract/schema.ts'
import { summarise } from '../../../lib/contract/summary.ts'
import { limits } from '../../../lib/limits.ts'
import { aContract } from '../../unit/contract/contracts.ts'

let root: string
let tree: string

beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'evaluate-'))
  tree = path.join(root, 'tree')
  await mkdir(tree)
})
afterEach(() => rm(root, { recursive: true, force: true }))

const place = (contract: Contract, more: Partial<Evaluation> = {}): Evaluation => ({
  ...{ contract, tree, outputDirectory: root, artifactPrefix: 'validate-1', phase: 'gate', captures: {} },
  ...{ env: { PATH: process.env.PATH ?? '' }, deadlineAt: null, now: Date.now, marker: root },
  ...more,
})

const evaluate = async (contract: Contract, more: Partial<Evaluation> = {}) => {
  const evaluation = await evaluateContract(place(contract, more))
  for (const result of evaluation.results) expect(checkResultSchema.parse(result)).toEqual(result)
  return evaluation
}

describe('an evaluation', () => {
  it('runs every check at the root of the tree, in order, also after a failure', async () => {
    await writeFile(path.join(tree, 'a'), 'x')
    const seen: string[] = []
    const contract = aContract([
      { name: 'red', command: 'exit 3' },
      { name: 'file', command: 'cat a' },
      { name: 'absent', command: 'no-such-command' },
      { name: 'plain file', command: './a' },
      { name: 'crash', command: 'kill -9 $$' },
    ])
    const { results, artifacts } = await evaluate(contract, {
      onCheckStarted: (check) => seen.push(`start ${check.name}`),
      onCheckCompleted: async (result) => {
        seen.push(`${result.name} ${result.reason}`)
      },
    })
    expect(results.map(({ verdict, reason, exit_code }) => [verdict, reason, exit_code])).toEqual([
      ['failed', 'exit_code', 3],
      ['passed', 'ok', 0],
      ['could_not_run', 'command_not_found', 127],
      ['could_not_run', 'not_executable', 126],
      ['could_not_run', 'signal', null],
    ])
    expect(seen.slice(0, 4)).toEqual(['start red', 'red exit_code', 'start file', 'file ok'])
    const artifact = `validate-1-2-file.${hash('sha256', 'x')}.log`
    expect(results[1]).toMatchObject({ output_head: 'x', output_bytes: 1, artifact })
    expect(artifacts.map((artifact) => artifact.name)).toEqual(results.map((result) => result.artifact))
    expect(await readFile(artifacts[1]?.file ?? '', 'utf8')).toBe('x')
  })

  it('artifact names are safe whatever a check is called', async () => {
    const names = ['../../etc/passwd', 'ünï\n', '..', `${'long '.repeat(20)}`]
    const { artifacts } = await evaluate(aContract(names.map((name) => ({ name, command: 'true' }))))
    for (const { name } of artifacts)
      expect(name).toMatch(/^validate-1-\d-[a-z0-9][a-z0-9-]*\.[0-9a-f]{64}\.log$/)
  })

  it('finds the expected output in the middle of a very long one', async () => {
    const filler = `yes 0123456789abcdef | head -c ${limits.artifact}`
    const command = `${filler}; printf nee; printf 'dle\\303\\251'; ${filler}`
    const { results } = await evaluate(
      aContract([
        { name: 'there', command, output_contains: 'needleé' },
        { name: 'not there', command: 'echo needle', output_contains: 'needleé' },
        { name: 'case', command: 'echo Needle', output_contains: 'needle' },
        { name: 'on the other stream', command: 'echo needle >&2', output_contains: 'needle' },
        { name: 'json', command: 'echo \'{"a":[1]}\'', output_contains: '$json:/a/0=1' },
        { name: 'no json', command: 'echo a', output_contains: '$json:/a=1' },
        { name: 'any exit', command: 'echo x; exit 9', expect_exit_zero: false, output_contains: 'x' },
      ]),
    )
    expect(results.map((result) => result.reason)).toEqual([
      ...['ok', 'output_missing', 'output_missing', 'ok', 'ok', 'output_not_json', 'ok'],
    ])
  })

  it('runs a check that is red on the untouched tree once more there, and finds a flake', async () => {
    const contract = aContract([
      { name: 'flake', command: 'echo x >> n; test "$(wc -l < n)" -gt 1' },
      { name: 'red', command: 'echo x >> m; exit 1' },
      { name: 'green', command: 'true' },
    ])
    const { results, artifacts } = await evaluate(contract, { phase: 'baseline' })
    expect(results.map(({ verdict, runs }) => [verdict, runs])).toEqual([
      ['flaky', 2],
      ['failed', 2],
      ['passed', 1],
    ])
    expect(new Set(artifacts.map(({ name }) => name)).size).toBe(5)
    expect((await evaluate(contract)).results.map(({ runs }) => runs)).toEqual([1, 1, 1])
  })

  it('repeats a check and finds that its runs disagree', async () => {
    const command = 'echo x >> count; test "$(wc -l < count)" -ne 2'
    const { results, artifacts } = await evaluate(aContract([{ name: 'flip', command, runs: 3 }]))
    expect(results).toMatchObject([{ verdict: 'flaky', passed: false, runs: 3, exit_code: 1 }])
    expect(results[0]?.artifact).toBe(`validate-1-1-flip-run-2.${hash('sha256', '')}.log`)
    expect(artifacts).toHaveLength(3)
  })

  it('does not repeat what could not run', async () => {
    const { results } = await evaluate(aContract([{ command: 'echo x >> count; exit 127', runs: 3 }]))
    expect(results).toMatchObject([{ verdict: 'could_not_run', runs: 1 }])
  })
})

describe('captures', () => {
  const contract = aContract([
    { name: 'size', command: 'wc -c < a', baseline: true },
    { name: 'grew', command: 'wc -c < a', differential: { baseline: 'size', expect: 'changed' } },
    {
      name: 'a little',
      command: 'wc -c < a',
      differential: { baseline: 'size', expect: { delta_within: { min: 1, max: 2 } } },
    },
    { name: 'same', command: 'cat b', differential: { baseline: 'size', expect: 'unchanged' } },
  ])

  it('are taken on the untouched tree, travel as JSON and are compared with later', async () => {
    await writeFile(path.join(tree, 'a'), '123')
    await writeFile(path.join(tree, 'b'), '3\n')
    const before = await evaluate(contract, { phase: 'baseline', artifactPrefix: 'baseline' })
    expect(before.results.every((result) => result.verdict === 'captured')).toBe(true)
    const captures = capturesSchema.parse(JSON.parse(JSON.stringify(before.captures)))
    await writeFile(path.join(tree, 'a'), '12345')
    const after = await evaluate(contract, { captures })
    expect(after.results[0]).toEqual(before.results[0])
    expect(after.results.slice(1).map((result) => result.verdict)).toEqual(['passed', 'passed', 'passed'])
    expect(summarise(after.results)).toMatchObject({ green: true, measured: true })
    const unmoved = await evaluate(aContract([{}]), { captures })
    expect(unmoved.captures).toEqual(captures)
  })

  it('that are missing leave comparisons without a verdict', async () => {
    await writeFile(path.join(tree, 'a'), '1')
    await writeFile(path.join(tree, 'b'), '1')
    const { results } = await evaluate(contract)
    expect(results.map((result) => result.reason)).toEqual(Array(4).fill('capture_missing'))
    expect(summarise(results)).toMatchObject({ green: false, measured: false })
  })
})

describe('time', () => {
  it("a check's own limit is its own fault", async () => {
    const { results } = await evaluate(aContract([{ command: 'sleep 1000', timeout_secs: 1 }]))
    const expected = {
      verdict: 'could_not_run',
      reason: 'timed_out',
      timed_out: true,
      deadline_clamped: false,
    }
    expect(results).toMatchObject([expected])
  })

  it('what the session clock kills or never lets begin is starved', async () => {
    const contract = aContract([
      { name: 'killed', command: 'sleep 1000' },
      { name: 'unstarted', command: 'true' },
    ])
    const { results, artifacts } = await evaluate(contract, { deadlineAt: Date.now() + 300 })
    expect(results).toMatchObject([
      { verdict: 'could_not_run', reason: 'deadline', timed_out: true, deadline_clamped: true, runs: 1 },
      { verdict: 'could_not_run', reason: 'deadline', timed_out: false, deadline_clamped: true, runs: 0 },
    ])
    expect(artifacts).toHaveLength(1)
    expect(summarise(results)).toMatchObject({ starved: true, measured: false })
  })

  it('a cancel ends the one that runs and the rest is not begun', async () => {
    const cancel = new AbortController()
    const contract = aContract([{ command: 'sleep 1000' }, { name: 'next', command: 'true' }])
    const { results } = await evaluate(contract, {
      signal: cancel.signal,
      onCheckStarted: () => setTimeout(() => cancel.abort(), 100),
    })
    expect(results).toMatchObject([
      { verdict: 'could_not_run', reason: 'cancelled', runs: 1 },
      { verdict: 'could_not_run', reason: 'cancelled', runs: 0 },
    ])
  })
})

describe('setup', () => {
  it('runs in order in the tree', async () => {
    const setup = await runSetup(place(aContract([{}], { setup: ['echo 1 > a', 'cat a'] })))
    expect(setup).toMatchObject({
      ok: true,
      artifacts: [{}, { name: `validate-1-setup-2.${hash('sha256', '1\n')}.log` }],
    })
  })

  it('stops at the first that fails and says which', async () => {
    const setup = await runSetup(
      place(aContract([{}], { setup: ['true', 'echo no; exit 2', 'touch after'] })),
    )
    expect(setup).toMatchObject({
      ok: false,
      command: 'echo no; exit 2',
      result: { exitCode: 2, head: 'no\n' },
    })
    await expect(readFile(path.join(tree, 'after'))).rejects.toThrow('ENOENT')
  })
})
