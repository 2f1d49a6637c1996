import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { makeRepository, temporaryFolder } from '../repositories.ts'
import type { Start } from './client.ts'
import { useStack } from './stack.ts'

const used = useStack()

type Check = NonNullable<Start['contract']>['checks'][number]

const run = async (contract: Start['contract'], engine_command: string, more: Partial<Start> = {}) => {
  const { directory } = makeRepository({
    files: { 'a.txt': 'one\n', 'lock/keep.txt': 'kept\n', '.gitignore': 'cache/\n', script: 'echo hi\n' },
  })
  const { id } = await used.api.start({
    repo: directory,
    intent: 'Try',
    engine_command,
    mode: 'auto',
    contract,
    repair_invokes: 0,
    ...more,
  })
  const asked = await used.api.untilGate(id, ['contract', 'approval', 'validate'])
  if (asked.gate?.kind !== 'contract') return asked
  await used.api.confirm(asked)
  return used.api.untilGate(id, ['approval', 'validate'], asked.event_cursor - 1)
}
const one = (check: Partial<Check> & { command: string }): Start['contract'] => ({
  checks: [{ name: 'c', ...check }],
})

test.each<[string, Partial<Check> & { command: string }, Record<string, unknown>]>([
  [
    'is missing',
    { command: 'test -e b.txt || exit 1; no-such-tool-here' },
    { verdict: 'could_not_run', reason: 'command_not_found', exit_code: 127 },
  ],
  [
    'is not executable',
    { command: 'test -e b.txt || exit 1; ./script' },
    { verdict: 'could_not_run', reason: 'not_executable', exit_code: 126 },
  ],
  [
    'is killed',
    { command: 'test -e b.txt || exit 1; kill -9 $$' },
    { verdict: 'could_not_run', reason: 'signal', signal: 'SIGKILL' },
  ],
  [
    'times out',
    { command: 'test -e b.txt || exit 1; sleep 60', timeout_secs: 1 },
    { verdict: 'could_not_run', reason: 'timed_out', timed_out: true, deadline_clamped: false },
  ],
])(
  'a check that %s is no verdict on the work: nothing is counted, and a person is asked',
  async (_name, check, expected) => {
    const session = await run(one(check), 'echo b > b.txt')
    expect(session).toMatchObject({
      ...{ state: 'running', iterations: 1, consecutive_failures: 0, total_failures: 0 },
      needs_you: {
        kind: 'validate',
        context: 'checks could not run: c',
      },
    })
    expect(session.last_check_results).toMatchObject([{ name: 'c', passed: false, ...expected }])
  },
)

test('a check that the session’s clock kills books the budget', async () => {
  const session = await run(one({ command: 'test -e b.txt || exit 1; sleep 60' }), 'echo b > b.txt', {
    max_wall_secs: 3,
  })
  expect(session).toMatchObject({ state: 'failed', failure_kind: 'budget_exhausted' })
  expect(session.last_check_results).toMatchObject([{ reason: 'deadline', deadline_clamped: true }])
})

test('a check whose runs disagree is flaky, and flaky is not green', async () => {
  const flip =
    'test -e b.txt || exit 1; if [ -e cache/seen ]; then exit 1; else mkdir -p cache; touch cache/seen; fi'
  const session = await run(one({ command: flip, runs: 2 }), 'echo b > b.txt')
  expect(session).toMatchObject({ state: 'failed', failure_kind: 'error' })
  expect(session.last_check_results).toMatchObject([{ verdict: 'flaky', reason: 'runs_disagree', runs: 2 }])
})

test('a check that edits the tree does not get its edits delivered', async () => {
  const session = await run(
    one({ command: 'test -e b.txt && echo droppings > dropped.txt && echo changed > a.txt' }),
    'echo b > b.txt',
  )
  expect(session.state).toBe('needs_approval')
  expect((await used.api.review(session.id)).changed_paths.map(({ path }) => path)).toEqual(['b.txt'])
  const evaluated = (await used.api.journal(session.id)).filter(({ type }) => type === 'contract_evaluated')
  expect(evaluated[0]?.data).toMatchObject({ on: 'worktree', green: true, tree_edited: true })
})

test('a fix that is green only with ignored leftovers is red on the clean checkout', async () => {
  const contract = one({ command: 'test -e cache/answer' })
  const session = await run(contract, 'mkdir -p cache; touch cache/answer; echo b > b.txt')
  expect(session).toMatchObject({ state: 'failed', failure_kind: 'error' })
  const evaluated = (await used.api.journal(session.id))
    .filter(({ type }) => type === 'contract_evaluated')
    .map(({ data }) => [data.on, data.green])
  expect(evaluated).toEqual([
    ['worktree', true],
    ['clean_checkout', false],
  ])
  const trusting = await run(contract, 'mkdir -p cache; touch cache/answer; echo b > b.txt', {
    verify: 'worktree',
  })
  expect(trusting.state).toBe('needs_approval')
})

test('an engine that edits a protected path fails the check of that name', async () => {
  const contract = { protect: ['lock/**'], checks: [{ name: 'c', command: 'test -e b.txt' }] }
  const session = await run(contract, 'echo b > b.txt; git mv lock/keep.txt moved.txt')
  expect(session).toMatchObject({ state: 'failed', failure_kind: 'error' })
  const protect = session.last_check_results.find(({ name }) => name === 'protect')
  expect(protect).toMatchObject({ verdict: 'failed', reason: 'protected_path_changed' })
  expect(protect?.output_head).toContain('lock/keep.txt')
})

test('setup runs once in each fresh tree, before its checks; a failing one is no verdict', async () => {
  const contract = {
    setup: ['mkdir -p cache && echo prepared >> cache/setup'],
    checks: [{ name: 'c', command: 'test -e b.txt && test "$(cat cache/setup)" = prepared' }],
  }
  const fine = await run(contract, 'echo b > b.txt')
  expect(fine.state).toBe('needs_approval')
})

test('a setup that fails at the baseline is shown to a person, who may measure the same contract again', async () => {
  const { directory } = makeRepository({ files: { 'a.txt': 'one\n' } })
  const contract = { setup: ['echo could not; exit 4'], checks: [{ name: 'c', command: 'test -e b.txt' }] }
  const { id } = await used.api.start({
    ...{ repo: directory, intent: 'Try', engine_command: 'true', mode: 'auto', contract },
  })
  const broken = await used.api.untilGate(id, 'contract')
  expect(broken).toMatchObject({ state: 'contract_proposed', iterations: 0 })
  expect(broken.needs_you).toMatchObject({
    label: 'Confirm or revise the contract: the setup failed on the untouched tree',
    context: expect.stringContaining('exited with 4: could not'),
  })
  expect(broken.baseline).toMatchObject([
    { verdict: 'could_not_run', reason: 'setup_failed', exit_code: 4, output_head: 'could not\n' },
  ])
  const setup = (await used.api.journal(broken.id)).find(({ type }) => type === 'setup_completed')?.data
  expect(setup).toMatchObject({ ok: false, output_head: 'could not\n' })
  const full = await used.api.call('GET', `/v1/sessions/${broken.id}/artifacts/${setup?.artifact}`)
  expect(full.body).toBe('could not\n')
  await used.api.call('POST', `/v1/sessions/${id}/contract/revise`, { contract })
  expect(await used.api.untilGate(id, 'contract', broken.event_cursor - 1)).toMatchObject({ iterations: 0 })
  await used.api.cancel(id)
})

test('a setup that went well and fails once in a later tree is tried again, and the green work is delivered', async () => {
  const counter = join(temporaryFolder(), 'runs')
  const setup = [`f=${counter}; n=$(cat $f 2>/dev/null || echo 0); n=$((n+1)); echo $n > $f; [ $n -ne 3 ]`]
  const contract = { setup, checks: [{ name: 'c', command: 'test -e b.txt' }] }
  const session = await run(contract, 'echo b > b.txt')
  expect(session).toMatchObject({ state: 'needs_approval', iterations: 1 })
  expect(readFileSync(counter, 'utf8')).toBe('4\n')
})

test('a setup that keeps failing after the work was done is asked about, and nothing is thrown away', async () => {
  const counter = join(temporaryFolder(), 'runs')
  const setup = [
    `f=${counter}; n=$(cat $f 2>/dev/null || echo 0); n=$((n+1)); echo $n > $f; [ $n -lt 2 ] || test -e ${counter}.well`,
  ]
  const contract = { setup, checks: [{ name: 'c', command: 'test -e b.txt' }] }
  const session = await run(contract, 'echo b > b.txt')
  expect(session.gate).toMatchObject({ kind: 'validate', cause: 'setup' })
  const { gate_id } = { gate_id: session.gate?.id ?? '' }
  const advance = await used.api.call('POST', `/v1/sessions/${session.id}/gate`, {
    gate_id,
    action: 'advance',
  })
  expect(advance.status).toBe(409)
  writeFileSync(`${counter}.well`, '')
  const again = await used.api.call('POST', `/v1/sessions/${session.id}/gate`, {
    gate_id,
    action: 'loop_back',
  })
  expect(again.status).toBe(200)
  const done = await used.api.untilGate(session.id, 'approval', session.event_cursor - 1)
  expect(done).toMatchObject({ state: 'needs_approval', iterations: 1 })
}, 120_000)

test('all checks run after a failure, outputs are artifacts, head and tail stand in the result', async () => {
  const contract = {
    checks: [
      { name: 'first', command: 'seq 1 20000; exit 1' },
      { name: 'says', command: 'echo value=42', output_contains: 'value=42' },
      { name: 'json', command: 'echo \'{"a":{"b":[1,2]}}\'', output_contains: '$json:/a/b=[1, 2]' },
      { name: 'size', command: 'wc -c < a.txt', baseline: true },
      {
        name: 'grew',
        command: 'wc -c < a.txt',
        differential: { baseline: 'size', expect: { delta_within: { min: 1, max: 100 } } },
      },
    ],
  }
  const session = await run(contract, 'echo more >> a.txt')
  const [first, says, json, size, grew] = session.last_check_results
  expect(first).toMatchObject({ verdict: 'failed', reason: 'exit_code', exit_code: 1, output_bytes: 108_894 })
  expect(first?.output_head.startsWith('1\n2\n')).toBe(true)
  expect(first?.output_tail.endsWith('20000\n')).toBe(true)
  const full = await used.api.call('GET', `/v1/sessions/${session.id}/artifacts/${first?.artifact}`)
  expect(String(full.body).length).toBe(108_894)
  expect([says?.verdict, json?.verdict, size?.verdict, grew?.verdict]).toEqual([
    'passed',
    'passed',
    'captured',
    'passed',
  ])
})

test('a repository that declares no checks ends as configuration and says what was looked for', async () => {
  const session = await run(null, 'true')
  expect(session).toMatchObject({ state: 'failed', failure_kind: 'configuration' })
  expect(session.error).toContain('package.json')
})
