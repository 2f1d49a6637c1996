import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { removeTree } from '../../../lib/workspace/remove-tree.ts'
import { git, temporaryFolder, writeFiles } from '../../repositories.ts'
import { contents, listTree, type Opened, open, readBlob } from './support.ts'

const squashed = { intent: 'x', sessionId: 'ses_1', date: new Date('2026-01-01') }

/** Everything in a git directory that could start a program, each leaving a mark when it does. */
const plant = ({ engineGit, workspace }: Opened, folder: string): string => {
  const mark = join(folder, 'ran')
  const evil = join(folder, 'evil')
  writeFileSync(evil, `#!/bin/sh\necho "$0 $*" >> ${mark}\ncat\n`, { mode: 0o755 })
  const config = `
[core]
	fsmonitor = ${evil}
	hooksPath = ${folder}/hooks
	sshCommand = ${evil}
	editor = ${evil}
	pager = ${evil}
	alternateRefsCommand = ${evil}
	attributesFile = ${folder}/attributes
	worktree = /etc
[filter "evil"]
	clean = ${evil}
	smudge = ${evil}
	process = ${evil}
	required = true
[diff "evil"]
	command = ${evil}
	textconv = ${evil}
[merge "evil"]
	driver = ${evil}
[diff]
	external = ${evil}
[extensions]
	worktreeConfig = true
	partialClone = evil
[remote "evil"]
	url = ${folder}
	promisor = true
	uploadpack = ${evil}
[gpg]
	program = ${evil}
[commit]
	gpgSign = true
[include]
	path = ${folder}/more
`
  for (const path of ['config', 'config.worktree', 'worktrees/tree/config', 'worktrees/tree/config.worktree'])
    writeFiles(engineGit, { [path]: config })
  for (const hook of [
    'pre-commit',
    'post-checkout',
    'post-index-change',
    'reference-transaction',
    'pre-push',
  ])
    for (const hooks of [join(engineGit, 'hooks'), join(folder, 'hooks')])
      writeFiles(hooks, { [hook]: { content: readFileSync(evil), executable: true } })
  writeFiles(engineGit, { 'info/attributes': '* filter=evil diff=evil merge=evil\n', 'info/exclude': '*\n' })
  writeFiles(folder, { attributes: '* filter=evil diff=evil\n' })
  writeFiles(workspace.tree, { '.gitattributes': '* filter=evil diff=evil merge=evil\n' })
  return mark
}

test('nothing planted in the git directory runs or hides anything in all that we do', async () => {
  const opened = await open({ 'a.txt': 'a\n' })
  const { workspace, folder } = opened
  const aside = temporaryFolder()
  const mark = plant(opened, aside)
  writeFiles(workspace.tree, { 'a.txt': 'changed\n', 'new.txt': 'new\n' })
  const { tree } = await workspace.capture()
  expect(listTree(workspace, tree)).toEqual(['.gitattributes', 'a.txt', 'new.txt'])
  await workspace.checkpoint(tree)
  const commit = await workspace.squash({ ...squashed, tree })
  expect((await workspace.changedPaths(commit)).stat).toEqual({ files: 3, insertions: 3, deletions: 1 })
  await workspace.writePatch(commit, join(folder, 'patch'))
  expect(readFileSync(join(folder, 'patch'), 'utf8')).toContain('+changed')
  await workspace.cleanCheckout(commit, join(folder, 'clean'))
  writeFiles(workspace.tree, { 'a.txt': 'by a check\n' })
  await workspace.reset(tree)
  await workspace.repairEngineRepository()
  expect(readFileSync(join(workspace.tree, 'a.txt'), 'utf8')).toBe('changed\n')
  expect(existsSync(mark)).toBe(false)
})

test.each<[string, (opened: Opened) => void]>([
  [
    'commits, moves HEAD and deletes branches',
    ({ workspace, engineGit }) => {
      git(workspace.tree, 'add', '-A')
      git(workspace.tree, 'commit', '--quiet', '-m', 'mine')
      git(workspace.tree, 'checkout', '--quiet', '--orphan', 'other')
      git(engineGit, 'branch', '-D', 'work')
    },
  ],
  [
    'hides files from its own index',
    ({ workspace }) => {
      git(workspace.tree, 'update-index', '--assume-unchanged', 'a.txt')
      git(workspace.tree, 'update-index', '--skip-worktree', 'b.txt')
      git(workspace.tree, 'add', '-A')
      git(workspace.tree, 'rm', '--quiet', '--cached', '-r', '.')
    },
  ],
  [
    'collects garbage after editing the alternates',
    ({ workspace, engineGit }) => {
      git(workspace.tree, 'commit', '--quiet', '--allow-empty', '-m', 'x')
      git(workspace.tree, 'gc', '--quiet', '--prune=now')
      writeFileSync(join(engineGit, 'objects/info/alternates'), '/nowhere\n')
    },
  ],
  ['deletes .git', ({ workspace }) => rmSync(join(workspace.tree, '.git'))],
  [
    'replaces .git by a repository',
    ({ workspace }) => {
      rmSync(join(workspace.tree, '.git'))
      git(workspace.tree, 'init', '--quiet')
    },
  ],
  [
    'replaces .git by a link',
    ({ workspace, engineGit }) => {
      rmSync(join(workspace.tree, '.git'))
      symlinkSync(engineGit, join(workspace.tree, '.git'))
    },
  ],
  ['deletes the whole repository', ({ engineGit }) => rmSync(engineGit, { recursive: true })],
  [
    'replaces the repository by a file',
    ({ engineGit }) => {
      rmSync(engineGit, { recursive: true })
      writeFileSync(engineGit, 'x')
    },
  ],
  [
    'writes rubbish into HEAD, index, config and refs',
    ({ engineGit }) => {
      for (const path of [
        'HEAD',
        'config',
        'packed-refs',
        'refs/heads/work',
        'worktrees/tree/HEAD',
        'worktrees/tree/index',
      ])
        writeFileSync(join(engineGit, path), '\0rubbish')
    },
  ],
  [
    'replaces the config by a folder',
    ({ engineGit }) => {
      rmSync(join(engineGit, 'config'))
      mkdirSync(join(engineGit, 'config'))
    },
  ],
  [
    'is killed inside git',
    ({ engineGit }) => {
      for (const path of [
        'index.lock',
        'HEAD.lock',
        'worktrees/tree/index.lock',
        'worktrees/tree/HEAD.lock',
        'refs/heads/work.lock',
        'config.lock',
        'packed-refs.lock',
      ])
        writeFileSync(join(engineGit, path), '')
    },
  ],
])('an engine that %s changes nothing we believe, and the next one has a working git', async (_, harm) => {
  const opened = await open({ 'a.txt': 'a\n', 'b.txt': 'b\n' })
  const { workspace, base } = opened
  writeFiles(workspace.tree, { 'a.txt': 'changed\n', 'b.txt': 'changed\n', 'c.txt': 'c\n' })
  harm(opened)
  const { tree, embedded } = await workspace.capture()
  expect(embedded).toEqual([])
  expect(listTree(workspace, tree)).toEqual(['a.txt', 'b.txt', 'c.txt'])
  expect(readBlob(workspace, tree, 'a.txt')).toBe('changed')
  const checkpoint = await workspace.checkpoint(tree)
  expect(git(workspace.gitDirectory, 'rev-parse', `${checkpoint.commit}^`)).toBe(base)
  const files = contents(workspace.tree, (path) => path.includes('/.git'))
  await workspace.repairEngineRepository()
  expect(contents(workspace.tree, (path) => path.includes('/.git'))).toEqual(files)
  git(workspace.tree, 'add', '-A')
  git(workspace.tree, 'commit', '--quiet', '--allow-empty', '-m', 'next')
  expect(git(workspace.tree, 'status', '--porcelain')).toBe('')
  expect((await workspace.capture()).tree).toBe(tree)
})

test("repair keeps a sound repository's commits", async () => {
  const { workspace } = await open()
  writeFiles(workspace.tree, { a: 'a' })
  git(workspace.tree, 'add', '-A')
  git(workspace.tree, 'commit', '--quiet', '-m', 'mine')
  await workspace.repairEngineRepository()
  expect(git(workspace.tree, 'log', '-1', '--format=%s')).toBe('mine')
})

test('a tree that was replaced by a link is refused, not followed', async () => {
  const { workspace } = await open()
  const precious = temporaryFolder()
  writeFiles(precious, { file: '1' })
  renameSync(workspace.tree, `${workspace.tree}.gone`)
  symlinkSync(precious, workspace.tree)
  await expect(workspace.capture()).rejects.toMatchObject({ problem: 'worktree_replaced' })
  await expect(workspace.reset(workspace.baseTree)).rejects.toMatchObject({ problem: 'worktree_replaced' })
  await expect(workspace.repairEngineRepository()).rejects.toMatchObject({ problem: 'worktree_replaced' })
  expect(readFileSync(join(precious, 'file'), 'utf8')).toBe('1')
})

test('a gitignore that is a link elsewhere hides nothing', async () => {
  const { workspace } = await open()
  const outside = join(temporaryFolder(), 'ignore')
  writeFileSync(outside, '*\n')
  symlinkSync(outside, join(workspace.tree, '.gitignore'))
  writeFiles(workspace.tree, { seen: '1' })
  expect(listTree(workspace, (await workspace.capture()).tree)).toContain('seen')
})

test('removing a tree follows no link', async () => {
  const folder = temporaryFolder()
  writeFiles(folder, { 'keep/file': '1', 'tree/in': { link: '../keep' } })
  symlinkSync(join(folder, 'keep'), join(folder, 'link'))
  await removeTree(join(folder, 'tree'))
  await removeTree(join(folder, 'link'))
  await removeTree(join(folder, 'nothing'))
  expect(readFileSync(join(folder, 'keep/file'), 'utf8')).toBe('1')
})
