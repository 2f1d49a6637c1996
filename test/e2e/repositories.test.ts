import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { git, gitWith, makeRepository, temporaryFolder } from '../repositories.ts'
import type { Start } from './client.ts'
import { useStack } from './stack.ts'

const used = useStack()
const contract: Start['contract'] = { checks: [{ name: 'done', command: 'test -e done' }] }

const run = async (repo: string, more: Partial<Start> = {}) => {
  const { id } = await used.api.start({
    repo,
    intent: 'Be done',
    engine_command: 'touch done',
    mode: 'auto',
    contract,
    ...more,
  })
  return used.api.untilGate(id, ['approval', 'preflight'])
}

/** A session that can't start, and what it says of that. */
const unready = (context: RegExp | string) => ({
  ...{ state: 'created', start_commit: null, iterations: 0, failure_kind: null },
  needs_you: {
    kind: 'preflight',
    context: typeof context === 'string' ? expect.stringContaining(context) : expect.stringMatching(context),
  },
})
const deliver = async (repo: string, more: Partial<Start> = {}) => {
  const session = await run(repo, more)
  expect(session).toMatchObject({ state: 'needs_approval', error: null })
  await used.api.approve(session.id)
  return used.api.untilEnd(session.id)
}

test.each([
  ['a path that is not there', () => join(temporaryFolder(), 'nowhere')],
  ['a folder that is no repository', () => temporaryFolder()],
])('%s is said at preflight', async (_name, path) => {
  expect(await run(path())).toMatchObject(unready(''))
})

test('a repository without commits is said at preflight', async () => {
  const session = await run(makeRepository({ files: null }).directory)
  expect(session).toMatchObject(unready(/no commits/))
})

test.each(['no-such-branch', '--help', 'HEAD:README.md', 'deadbeef'])(
  'the base %s does not resolve to a commit',
  async (base) => {
    expect(await run(makeRepository().directory, { base })).toMatchObject(unready(base))
  },
)

test('a base that was named is resolved to a full commit and delivered upon', async () => {
  const repository = makeRepository()
  const first = repository.head
  repository.commit({ 'later.txt': 'later' })
  const session = await deliver(repository.directory, { base: 'main~1' })
  expect(session).toMatchObject({ state: 'merged', base: first, start_commit: first })
  expect(repository.git('rev-parse', `${session.result_branch}^`)).toBe(first)
})

test('a bare repository and a file:// address work', async () => {
  const bare = makeRepository({ bare: true })
  expect(await deliver(bare.directory)).toMatchObject({ state: 'merged' })
  const plain = makeRepository()
  const session = await deliver(pathToFileURL(plain.directory).href)
  expect(plain.git('rev-parse', session.result_branch ?? '')).toBe(session.result_commit)
})

test('the dirt of a checkout stays where it is and is not delivered', async () => {
  const repository = makeRepository({ files: { 'README.md': 'clean\n', 'gone.txt': 'x' } })
  const { directory } = repository
  writeFileSync(join(directory, 'README.md'), 'dirty\n')
  writeFileSync(join(directory, 'untracked.txt'), 'mine\n')
  repository.git('rm', '-q', 'gone.txt')
  const status = repository.git('status', '--porcelain')
  const session = await deliver(directory)
  expect(repository.git('status', '--porcelain')).toBe(status)
  expect(readFileSync(join(directory, 'README.md'), 'utf8')).toBe('dirty\n')
  expect(repository.git('diff', '--name-status', 'HEAD', session.result_commit ?? '')).toBe('A\tdone')
})

test('strange names, binary files, deletions, renames, modes and links come through whole', async () => {
  const repository = makeRepository({
    files: {
      'old name.txt': 'line one\nline two\nline three\nline four\n',
      'gone.txt': 'x\n',
      'run.sh': 'echo\n',
      'image.bin': Buffer.from([0, 1, 2, 255]),
    },
  })
  const engine = [
    'git mv "old name.txt" "new \\"quoted\\" name.txt"',
    'rm gone.txt',
    'chmod +x run.sh',
    "printf '\\000\\377\\000' > image.bin",
    'ln -s /etc/passwd link',
    'printf x > "$(printf \'line\\nbreak\')"',
    'printf y > "$(printf \'latin\\351\')"',
    'touch done "tab\there"',
  ].join('\n')
  const session = await deliver(repository.directory, { engine_command: engine })
  const commit = session.result_commit ?? ''
  const names = gitWith(repository.directory, {}, 'ls-tree', '-r', '-z', '--name-only', commit)
    .split('\0')
    .filter(Boolean)
  expect(names).toContain('new "quoted" name.txt')
  expect(names).toContain('line\nbreak')
  expect(names).toHaveLength(8)
  expect(repository.git('ls-tree', commit, 'run.sh')).toMatch(/^100755/)
  expect(repository.git('ls-tree', commit, 'link')).toMatch(/^120000/)
  const diff = await used.api.call('GET', `/v1/sessions/${session.id}/diff`, undefined, {
    accept: 'application/json',
  })
  const { files } = diff.body as { files: { path: string; status: string; old_path: string | null }[] }
  const byPath = new Map(files.map((file) => [file.path, file]))
  expect(byPath.get('new "quoted" name.txt')).toMatchObject({ status: 'renamed', old_path: 'old name.txt' })
  expect(byPath.get('gone.txt')).toMatchObject({ status: 'deleted' })
  expect(byPath.get('image.bin')).toMatchObject({ status: 'modified', binary: true })
  // The whole patch is the change: applied to the base it makes the very tree that was delivered.
  const response = await fetch(`${used.api.url}/v1/sessions/${session.id}/diff`, {
    headers: { authorization: `Bearer ${used.stack.adminToken}` },
  })
  const patch = Buffer.from(await response.arrayBuffer())
  const index = join(temporaryFolder(), 'index')
  const env = { GIT_INDEX_FILE: index }
  gitWith(repository.directory, { env }, 'read-tree', repository.head)
  gitWith(repository.directory, { env, input: patch }, 'apply', '--cached')
  expect(gitWith(repository.directory, { env }, 'write-tree')).toBe(
    repository.git('rev-parse', `${commit}^{tree}`),
  )
})

test('submodules and LFS pointers are refused with words at preflight', async () => {
  const inner = makeRepository()
  const outer = makeRepository()
  outer.git('-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', inner.directory, 'inner')
  outer.git('commit', '-qm', 'with a submodule')
  const submodule = await run(outer.directory)
  expect(submodule).toMatchObject(unready(/submodule/i))
  const pointer =
    'version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n'
  const lfs = await run(
    makeRepository({
      files: { '.gitattributes': '*.bin filter=lfs diff=lfs merge=lfs -text\n', 'a.bin': pointer },
    }).directory,
  )
  expect(lfs).toMatchObject(unready(/LFS/))
})

test('a branch named gatehouse is found before anything is done', async () => {
  const repository = makeRepository()
  repository.git('branch', 'gatehouse')
  const session = await run(repository.directory)
  expect(session).toMatchObject(unready('gatehouse'))
})

test('a delivery that fails goes back to review and succeeds on the next approval; nothing is written in between', async () => {
  const repository = makeRepository()
  const session = await run(repository.directory)
  repository.git('branch', 'gatehouse')
  await used.api.approve(session.id)
  const again = await used.api.untilGate(session.id, 'approval', session.journal_head.sequence)
  expect(again).toMatchObject({ state: 'needs_approval', needs_you: { kind: 'approval' } })
  expect(again.delivery_problem).toContain('gatehouse')
  expect(git(repository.directory, 'branch', '--list')).not.toContain('gatehouse/')
  repository.git('branch', '-D', 'gatehouse')
  await used.api.approve(session.id)
  expect(await used.api.untilEnd(session.id, again.journal_head.sequence)).toMatchObject({
    state: 'merged',
    result_commit: again.review_identity?.commit,
  })
  expect(await used.api.verify(session.id)).toMatchObject({ ok: true })
})

test('an empty repository tree is worked on like any other', async () => {
  const repository = makeRepository({ files: {} })
  expect(await deliver(repository.directory)).toMatchObject({ state: 'merged' })
})
