import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { git, makeRepository } from '../repositories.ts'
import { useStack } from './stack.ts'

const used = useStack()

const failing = {
  'package.json': JSON.stringify({ type: 'module', scripts: { test: 'node --test' } }),
  'sum.js': 'export const sum = (a, b) => a - b\n',
  'sum.test.js':
    "import { equal } from 'node:assert'\nimport { test } from 'node:test'\nimport { sum } from './sum.js'\ntest('adds', () => equal(sum(1, 2), 3))\n",
}
const fix = "sed 's/a - b/a + b/' sum.js > new && mv new sum.js"

test('a real failing test goes red, green, approved and becomes a branch, watched live', async () => {
  const { api } = used
  const { directory } = makeRepository({ files: failing })
  writeFileSync(join(directory, 'sum.js'), 'dirt of the user\n')
  const before = {
    head: git(directory, 'rev-parse', 'HEAD'),
    status: git(directory, 'status', '--porcelain'),
    config: readFileSync(join(directory, '.git/config'), 'utf8'),
  }

  const created = await api.start({ repo: directory, intent: 'Make sum add', engine_command: fix })
  expect(created.state).toBe('created')
  const atContract = await api.untilGate(created.id, 'contract')
  expect(atContract).toMatchObject({
    state: 'contract_proposed',
    contract_provenance: 'runtime_generated',
    baseline_gates_nothing: false,
  })
  expect(atContract.needs_you?.kind).toBe('contract')
  expect(atContract.baseline).toMatchObject([{ name: 'npm test', verdict: 'failed', reason: 'exit_code' }])
  expect(atContract.baseline[0]?.output_head).toContain('adds')
  expect(git(directory, 'branch', '--list', 'gatehouse/*')).toBe('')

  await api.confirm(atContract)
  const atReview = await api.untilGate(created.id, 'approval')
  expect(atReview).toMatchObject({ state: 'needs_approval', iterations: 1, needs_you: { kind: 'approval' } })
  const review = await api.review(created.id)
  expect(review).toMatchObject({
    kind: 'change',
    base: before.head,
    contract_hash: atReview.contract_hash,
    stat: { files: 1, insertions: 1, deletions: 1 },
  })
  expect(review.checks.every((check) => check.passed)).toBe(true)
  expect(review.patch).toContain('+export const sum = (a, b) => a + b')
  const diff = await api.call('GET', `/v1/sessions/${created.id}/diff`, undefined, { accept: 'text/x-diff' })
  expect(diff.body).toBe(review.patch)

  await api.approve(created.id)
  const merged = await api.untilEnd(created.id)
  expect(merged).toMatchObject({
    state: 'merged',
    result_commit: review.commit,
    result_delivery: 'branch',
    decided_by: 'admin',
    failure_kind: null,
  })

  const branch = merged.result_branch ?? ''
  expect(git(directory, 'rev-parse', branch)).toBe(review.commit)
  expect(git(directory, 'rev-parse', `${branch}^`)).toBe(before.head)
  expect(git(directory, 'rev-parse', `${branch}^{tree}`)).toBe(review.tree)
  expect({
    head: git(directory, 'rev-parse', 'HEAD'),
    status: git(directory, 'status', '--porcelain'),
    config: readFileSync(join(directory, '.git/config'), 'utf8'),
  }).toEqual(before)
  expect(readFileSync(join(directory, 'sum.js'), 'utf8')).toBe('dirt of the user\n')

  expect(await api.verify(created.id)).toMatchObject({ ok: true })
  const live = await api.follow(created.id, () => false)
  const states = live.filter(({ type }) => type === 'state_changed').map(({ data }) => data.to)
  expect(states).toEqual(['contract_proposed', 'contract_confirmed', 'running', 'needs_approval', 'merged'])
  expect(used.faults).toEqual([])
})

test('an engine gets a second try with the failing check’s output, on standard input and in a file', async () => {
  const { api } = used
  const { directory } = makeRepository({ files: { 'a.txt': 'x' } })
  const engine =
    'cat > "in-$GATEHOUSE_ITERATION"; cp "$GATEHOUSE_PROMPT_FILE" "file-$GATEHOUSE_ITERATION"; [ "$GATEHOUSE_ITERATION" = 2 ] && echo right > answer; true'
  const { id } = await api.start({
    repo: directory,
    intent: 'Write the answer',
    engine: 'external:command',
    engine_command: engine,
    mode: 'auto',
    contract: {
      checks: [{ name: 'answer', command: 'echo "the answer is missing: MARK"; grep right answer' }],
    },
  })
  const session = await api.untilGate(id, 'approval')
  expect(session).toMatchObject({ state: 'needs_approval', iterations: 2, engine_ran: 'external:command' })
  const { patch } = await api.review(id)
  const added = (name: string) => patch.slice(patch.indexOf(`b/${name}`)).split('diff --git')[0] ?? ''
  expect(added('in-1')).toContain('Write the answer')
  expect(added('in-1')).not.toContain('+the answer is missing: MARK')
  expect(added('in-2')).toContain('+the answer is missing: MARK')
  const files = await api.call('GET', `/v1/sessions/${id}/diff`, undefined, { accept: 'application/json' })
  expect(files.body).toMatchObject({
    files: expect.arrayContaining([expect.objectContaining({ path: 'file-2', status: 'added' })]),
  })
  expect(
    added('file-2')
      .split('\n')
      .filter((line) => line.startsWith('+') && !line.startsWith('+++')),
  ).toEqual(
    added('in-2')
      .split('\n')
      .filter((line) => line.startsWith('+') && !line.startsWith('+++')),
  )
})

test('a contract stays red through three tries and ends as error, with what each try did in the history', async () => {
  const { api } = used
  const { directory } = makeRepository({ files: { 'a.txt': 'x' } })
  const { id } = await api.start({
    repo: directory,
    intent: 'Impossible',
    engine_command: 'date +%N > a.txt',
    mode: 'auto',
    max_iterations: 3,
    contract: { checks: [{ name: 'never', command: 'exit 3' }] },
  })
  const session = await api.untilEnd(id)
  expect(session).toMatchObject({ state: 'failed', failure_kind: 'error', iterations: 3, needs_you: null })
  expect(session.error).toContain('never')
  const history = (await api.call('GET', `/v1/sessions/${id}/history`)).body
  expect(history).toMatchObject({ executions: [{ attempt: 1 }] })
  const text = JSON.stringify(history)
  expect(text).toContain('iteration 2: red: never')
  expect(await api.verify(id)).toMatchObject({ ok: true })
  expect(git(directory, 'branch', '--list', 'gatehouse/*')).toBe('')
})

test('a revised contract is measured anew; the old hash no longer confirms; an edited one may come with the confirmation', async () => {
  const { api } = used
  const { directory } = makeRepository({ files: { 'a.txt': 'x' } })
  const check = (command: string) => ({ checks: [{ name: 'c', command }] })
  const { id } = await api.start({
    repo: directory,
    intent: 'x',
    engine_command: 'touch b',
    contract: check('test -e a.txt'),
  })
  const first = await api.untilGate(id, 'contract')
  expect(first.baseline_gates_nothing).toBe(true)
  const same = await api.call('POST', `/v1/sessions/${id}/contract/revise`, {
    contract: { ...check('test -e a.txt'), description: 'other words' },
  })
  expect(same.body).toMatchObject({ revised: false, session: { contract_hash: first.contract_hash } })
  const revised = await api.call('POST', `/v1/sessions/${id}/contract/revise`, {
    contract: check('test -e b'),
  })
  expect(revised.body).toMatchObject({ revised: true })
  const second = await api.untilGate(id, 'contract', first.journal_head.sequence)
  expect(second).toMatchObject({
    baseline_gates_nothing: false,
    contract_provenance: 'operator_supplied',
    baseline: [{ verdict: 'failed' }],
  })
  const stale = await api.call('POST', `/v1/sessions/${id}/contract/confirm`, {
    contract_hash: first.contract_hash,
  })
  expect(stale.status).toBe(409)
  expect(api.problem(stale)).toMatchObject({
    code: 'contract_moved',
    session: { contract_hash: second.contract_hash },
  })
  const invalid = await api.call('POST', `/v1/sessions/${id}/contract/confirm`, {
    contract_hash: second.contract_hash,
    contract: { checks: [] },
  })
  expect(api.problem(invalid).code).toBe('invalid_contract')
  const edited = await api.call('POST', `/v1/sessions/${id}/contract/confirm`, {
    contract_hash: second.contract_hash,
    contract: check('test -f b'),
  })
  expect(edited.body).toMatchObject({
    contract_provenance: 'human_confirmed',
    contract: { checks: [{ command: 'test -f b' }] },
  })
  expect(await api.untilGate(id, 'approval')).toMatchObject({ state: 'needs_approval' })
})

test('the admin token is a file that only its owner can read', () => {
  expect(statSync(join(used.home, 'admin-token')).mode & 0o777).toBe(0o600)
})
