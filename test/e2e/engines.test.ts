import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { liveProcesses } from '../../lib/process/live.ts'
import { git, makeRepository, temporaryFolder } from '../repositories.ts'
import type { Start } from './client.ts'
import { useStack } from './stack.ts'

const used = useStack()

const done = { checks: [{ name: 'done', command: 'test "$(cat done)" = yes' }] }

const run = async (engine_command: Start['engine_command'], more: Partial<Start> = {}) => {
  const { directory } = makeRepository({ files: { 'a.txt': 'one\n', 'b.txt': 'two\n' } })
  const { id } = await used.api.start({
    repo: directory,
    intent: 'Be done',
    engine_command,
    mode: 'auto',
    contract: done,
    ...more,
  })
  const session = await used.api.untilGate(id, ['approval', 'preflight', 'validate'])
  return { directory, id, session }
}

test('an engine that writes nothing while the contract is green ends as a finding that a person accepts', async () => {
  const { api } = used
  const { directory } = makeRepository({ files: { 'a.txt': 'one\n' } })
  const { id } = await api.start({
    repo: directory,
    intent: 'Nothing to do',
    engine_command: 'true',
    contract: { checks: [{ name: 'there', command: 'test -e a.txt' }] },
  })
  const gate = await api.untilGate(id, 'contract')
  expect(gate.baseline_gates_nothing).toBe(true)
  await api.confirm(gate)
  const session = await api.untilGate(id, 'approval')
  expect(session.no_change_finding).toMatchObject({
    ...{ kind: 'already_satisfied', verification: 'runtime_baseline_green', resolved_at: null },
  })
  expect(await api.review(id)).toMatchObject({
    kind: 'finding',
    patch: '',
    stat: { files: 0 },
    commit: session.start_commit,
  })
  await api.approve(id)
  const ended = await api.untilEnd(id)
  expect(ended).toMatchObject({
    state: 'reported',
    result_branch: null,
    result_commit: null,
    no_change_finding: { verification: 'human_approved' },
  })
  expect(git(directory, 'branch', '--list', 'gatehouse/*')).toBe('')
  expect(await api.verify(id)).toMatchObject({ ok: true })
})

test('mode auto asks a person when the contract gates nothing', async () => {
  const { directory } = makeRepository({ files: { 'a.txt': 'one\n' } })
  const { id } = await used.api.start({
    repo: directory,
    intent: 'x',
    engine_command: 'true',
    mode: 'auto',
    contract: { checks: [{ name: 'there', command: 'test -e a.txt' }] },
  })
  expect(await used.api.untilGate(id, 'contract')).toMatchObject({
    state: 'contract_proposed',
    needs_you: { kind: 'contract' },
  })
  await used.api.cancel(id)
})

test('an engine that writes nothing while the contract is red fails as error', async () => {
  const { session } = await run('true', { repair_invokes: 1 })
  expect(session).toMatchObject({
    ...{ state: 'failed', failure_kind: 'error', iterations: 2 },
    last_turn: { status: 'failed', decided_by_layer: 2 },
  })
})

test('what an engine commits by itself is delivered as one commit of ours on the base', async () => {
  const { directory, id, session } = await run(
    'echo yes > done; git add done; git commit -qm mine; echo more > more; git add more; git commit -qm mine2',
  )
  expect(session.state).toBe('needs_approval')
  await used.api.approve(id)
  const { result_commit, result_branch } = await used.api.untilEnd(id)
  expect(git(directory, 'rev-list', '--count', `HEAD..${result_branch}`)).toBe('1')
  expect(git(directory, 'show', '-s', '--format=%s|%an', result_commit ?? '')).toBe('Be done|Gatehouse')
  expect(git(directory, 'ls-tree', '--name-only', result_commit ?? '').split('\n')).toEqual([
    'a.txt',
    'b.txt',
    'done',
    'more',
  ])
})

test.each([
  ['resets HEAD', 'echo yes > done; git update-ref -d HEAD; git symbolic-ref HEAD refs/heads/other'],
  ['deletes .git', 'echo yes > done; rm -rf .git'],
  ['destroys the repository behind .git', 'echo yes > done; rm -rf "$(git rev-parse --git-common-dir)"'],
])('an engine that %s still delivers exactly its files', async (_name, engine) => {
  const { id, session } = await run(engine)
  expect(session).toMatchObject({ state: 'needs_approval', review_identity: { kind: 'change' } })
  expect(await used.api.review(id)).toMatchObject({ changed_paths: [{ path: 'done', status: 'added' }] })
})

test('hooks, filters and programs that an engine plants are never run', async () => {
  const folder = temporaryFolder()
  const trap = join(folder, 'trap')
  const plant = [
    'echo yes > done',
    `printf '#!/bin/sh\\ntouch ${trap}\\n' > evil; chmod +x evil`,
    'd=$(git rev-parse --git-common-dir); mkdir -p $d/hooks; for h in pre-commit post-checkout post-commit reference-transaction post-index-change; do cp evil $d/hooks/$h; done',
    'git config core.fsmonitor "$PWD/evil"; git config filter.x.clean "$PWD/evil"; git config filter.x.smudge "$PWD/evil"; git config diff.external "$PWD/evil"',
    'echo "* filter=x diff=x" > .gitattributes',
  ].join('\n')
  const { session } = await run(plant)
  expect(session.state).toBe('needs_approval')
  expect(existsSync(trap)).toBe(false)
})

test('processes that an engine leaves behind are gone before its work is judged', async () => {
  const folder = temporaryFolder()
  const { session, id } = await run(
    `echo yes > done; (while :; do date > ${folder}/alive; sleep 0.1; done) & setsid sleep 321 & sleep 654 &`,
  )
  expect(session.state).toBe('needs_approval')
  const entries = await used.api.journal(id)
  expect(entries.find(({ type }) => type === 'engine_finished')?.data).toMatchObject({
    survivors: 0,
    exit_code: 0,
    status: 'finished',
  })
  // By the mark of this very run: the worker itself, which carries another, may still be on its way out.
  const runMark = entries.find(({ type }) => type === 'checkpoint_created')?.data.id
  expect(runMark).toMatch(/^cmd_/)
  expect(await liveProcesses({ group: null, mark: String(runMark) })).toEqual([])
})

test('an engine that prints 200 MB costs a bounded artifact and a few journal lines', async () => {
  const { session, id } = await run('head -c 200000000 /dev/zero | tr "\\0" x; echo yes > done')
  expect(session.state).toBe('needs_approval')
  const entries = await used.api.journal(id)
  const finished = entries.find(({ type }) => type === 'engine_finished')?.data
  expect(finished).toMatchObject({ output_bytes: 200_000_000 })
  const printed = entries.filter(({ type }) => type === 'engine_output')
  expect(JSON.stringify(printed).length).toBeLessThan(4_000_000)
  expect(
    printed.reduce((sum, { data }) => sum + String(data.text).length + Number(data.omitted_bytes), 0),
  ).toBe(200_000_000)
  const artifact = await used.api.call('GET', `/v1/sessions/${id}/artifacts/${finished?.artifact}`)
  expect(String(artifact.body).length).toBeLessThan(17 * 1024 * 1024)
})

test('an engine that prints invalid UTF-8 and NUL is journaled as text', async () => {
  const { session, id } = await run("printf 'ok \\377\\376 \\0 caf\\303\\251'; echo yes > done")
  expect(session.state).toBe('needs_approval')
  const printed = (await used.api.journal(id))
    .filter(({ type }) => type === 'engine_output')
    .map(({ data }) => data.text)
  expect(printed.join('')).toBe('ok \ufffd\ufffd \ufffd café')
})

test('an engine that never ends is stopped by the session’s clock, and that is the budget', async () => {
  const { session, id } = await run('echo yes > done; sleep 1000', { max_wall_secs: 2 })
  expect(session).toMatchObject({ state: 'failed', failure_kind: 'budget_exhausted', needs_you: null })
  expect((await used.api.journal(id)).find(({ type }) => type === 'engine_finished')?.data).toMatchObject({
    status: 'timed_out',
  })
  expect(session.checkpoint?.bundle).not.toBeNull()
})

test('an engine that is not there is said at preflight; one that the shell can’t find is typed', async () => {
  const missing = await run(['no-such-engine-anywhere', 'x'])
  expect(missing.session).toMatchObject({
    ...{ state: 'created', iterations: 0 },
    needs_you: { kind: 'preflight', context: expect.stringContaining('no-such-engine-anywhere') },
  })
  const shell = await run('no-such-engine-anywhere')
  expect(
    (await used.api.journal(shell.id)).find(({ type }) => type === 'engine_finished')?.data,
  ).toMatchObject({ status: 'unavailable', exit_code: 127 })
  expect(shell.session).toMatchObject({ state: 'failed', failure_kind: 'infrastructure' })
})

test('an argument list runs without a shell; exit codes are typed and never believed', async () => {
  const { session, id } = await run(['sh', '-c', 'echo yes > done; echo "all tests pass" ; exit 9'])
  expect(session.state).toBe('needs_approval')
  expect((await used.api.journal(id)).find(({ type }) => type === 'engine_finished')?.data).toMatchObject({
    status: 'failed',
    exit_code: 9,
  })
})

test('an engine that makes a repository inside the tree is told that it can’t be delivered', async () => {
  const { session } = await run(
    'echo yes > done; mkdir -p inner; cd inner; git init -q; echo x > f; git add f; git commit -qm inner',
    { repair_invokes: 0 },
  )
  expect(session).toMatchObject({ state: 'failed', failure_kind: 'error' })
  expect(session.last_check_results.find(({ name }) => name === 'no-embedded-repository')).toMatchObject({
    verdict: 'failed',
    reason: 'embedded_repository',
  })
})

test.each([
  ['its worktree', 'rm -rf "$PWD"'],
  [
    'the folders above its worktree',
    'trees=$(dirname "$(dirname "$PWD")"); chmod -R u+w "$trees/.."; rm -rf "$trees"',
  ],
  ['what its worker works with', 'rm -rf ../../../work/run/trusted.git ../../../work/run/index'],
])('an engine that destroys %s loses that iteration and nothing else', async (_name, destroy) => {
  const engine = `if [ "$GATEHOUSE_ITERATION" = 1 ]; then ${destroy}; exit 1; fi; echo yes > done`
  const { session, id } = await run(engine)
  expect(session).toMatchObject({ state: 'needs_approval', iterations: 2, infra_failures: 0 })
  const entries = await used.api.journal(id)
  expect(entries.filter(({ type }) => type === 'engine_finished').map(({ data }) => data.exit_code)).toEqual([
    1, 0,
  ])
  expect(
    entries.some(({ type, data }) => type === 'error' && String(data.message).includes('destroyed')),
  ).toBe(true)
})

test('an engine finds no token of its worker in the environment of the process that started it', async () => {
  const { session, id } = await run('tr "\\0" "\\n" < /proc/$PPID/environ | grep -i token; echo yes > done')
  expect(session.state).toBe('needs_approval')
  const printed = (await used.api.journal(id)).filter(({ type }) => type === 'engine_output')
  expect(printed.map(({ data }) => String(data.text)).join('')).not.toMatch(/gh_[A-Za-z0-9_-]{20}/)
})
