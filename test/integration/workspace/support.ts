import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, vi } from 'vitest'
import { resolveBase } from '../../../lib/workspace/base.ts'
import { fetchMirror } from '../../../lib/workspace/mirror.ts'
import { parseRepository } from '../../../lib/workspace/repository-address.ts'
import { openWorkspace, type Workspace } from '../../../lib/workspace/workspace.ts'
import {
  type FileSpec,
  git,
  makeRepository,
  type TestRepository,
  temporaryFolder,
} from '../../repositories.ts'

export const localRepository = (path: string) => parseRepository(path, { allowLocal: true })

/** The value of a result that has to be good. */
export const good = <Result extends { ok: boolean }>(result: Result): Extract<Result, { ok: true }> => {
  if (isGood(result)) return result
  throw new Error(JSON.stringify(result))
}
const isGood = <Result extends { ok: boolean }>(result: Result): result is Extract<Result, { ok: true }> =>
  result.ok

export const mirrorOf = async (path: string, home = temporaryFolder()): Promise<string> =>
  good(await fetchMirror({ home, repository: localRepository(path) })).directory

export type Opened = {
  repository: TestRepository
  workspace: Workspace
  mirror: string
  base: string
  folder: string
  engineGit: string
}

type Source = { mirror: string; base: string }
const sources = new Map<string, Promise<Source>>()
const shared = mkdtempSync(join(tmpdir(), 'gatehouse-test-'))
afterAll(() => rmSync(shared, { recursive: true, force: true }))

const prepareSource = async (files: Record<string, FileSpec>): Promise<Source> => {
  const { directory } = makeRepository({ files, directory: join(shared, `repository-${sources.size}`) })
  const mirror = await mirrorOf(directory, shared)
  return { mirror, base: good(await resolveBase(mirror, null)).commit }
}

/**
 * A repository of these files, mirrored and opened. Its commit depends on the files alone, so tests with the same files
 * share a mirror; the repository itself is made for the test that looks at it.
 */
export const open = async (files: Record<string, FileSpec> = { 'README.md': 'hello\n' }): Promise<Opened> => {
  const key = JSON.stringify(files)
  const source = sources.get(key) ?? prepareSource(files)
  sources.set(key, source)
  const { mirror, base } = await source
  const folder = temporaryFolder()
  const workspace = await openWorkspace({ run: join(folder, 'run'), mirror, base })
  let repository: TestRepository | undefined
  return {
    get repository() {
      repository ??= makeRepository({ files })
      return repository
    },
    workspace,
    mirror,
    base,
    folder,
    engineGit: join(folder, 'run', 'engine.git'),
  }
}

/** Paths and object names of a tree, from our repository. */
export const listTree = (workspace: Workspace, tree: string): string[] =>
  git(workspace.gitDirectory, 'ls-tree', '-r', '--name-only', tree).split('\n').filter(Boolean)

export const readBlob = (workspace: Workspace, tree: string, path: string): string =>
  git(workspace.gitDirectory, 'cat-file', 'blob', `${tree}:${path}`)

/** Every path below a folder with its content, except what `skip` names. */
export const contents = (
  folder: string,
  skip: (path: string) => boolean = () => false,
): Map<string, string> => {
  const found = new Map<string, string>()
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
    const path = join(entry.parentPath, entry.name)
    if (skip(path)) continue
    if (entry.isSymbolicLink()) found.set(path, `link ${readlinkSync(path)}`)
    else found.set(path, entry.isFile() ? readFileSync(path, 'latin1') : 'folder')
  }
  return found
}

// Every test starts dozens of processes, on machines that may be busy with others.
vi.setConfig({ testTimeout: 60_000 })
