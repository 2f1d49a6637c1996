import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { draftContract, type RepositoryFiles } from '../../../lib/contract/draft.ts'
import { contractWarnings } from '../../../lib/contract/validate.ts'
import { engineRunnable } from '../../../lib/engine/runnable.ts'
import type { Command, Result } from '../../../lib/session/protocol.ts'
import type { FailureKind } from '../../../lib/session/states.ts'
import { resolveBase } from '../../../lib/workspace/base.ts'
import { branchName, checkDeliverable } from '../../../lib/workspace/delivery-check.ts'
import { pinBase } from '../../../lib/workspace/mirror.ts'
import { preflightTree } from '../../../lib/workspace/preflight.ts'
import { removeTree } from '../../../lib/workspace/remove-tree.ts'
import { openWorkspace } from '../../../lib/workspace/workspace.ts'
import { evaluate, setUp } from '../evaluate.ts'
import { mirrorOf, repositoryOf, WorkerFault, type WorkerSession, workspaceOf } from '../session.ts'

const failed = (failure_kind: FailureKind, error: string): Result => ({
  outcome: 'failed',
  failure_kind,
  error,
})

/** What a repository's own failure means for the session. */
const kindOf = (problem: string): FailureKind => {
  if (problem === 'authentication') return 'auth_required'
  return problem === 'unreachable' ? 'infrastructure' : 'configuration'
}

/** Repository reachable, base resolves, tree can be checked out whole, branch can be made, engine can run. */
export const preflight = async (session: WorkerSession, command: Command): Promise<Result> => {
  const mirror = await mirrorOf(session, command)
  if (typeof mirror !== 'string') return failed(kindOf(mirror.problem), mirror.detail)
  const base = await resolveBase(mirror, command.session.requested_base)
  if (!base.ok) return failed('configuration', base.detail)
  const target = {
    repository: repositoryOf(command),
    branch: branchName(command.session.id),
    signal: session.signal,
  }
  const [problems, standing] = await Promise.all([
    preflightTree(mirror, base.commit),
    checkDeliverable(target),
  ])
  if (problems.length > 0) return failed('configuration', problems.map(({ detail }) => detail).join(' '))
  if (!standing.ok) return failed(kindOf(standing.problem), standing.detail)
  const { engine_command: engine } = command.session
  const unrunnable =
    engine === null ? 'the session names no engine command' : engineRunnable(engine, session.env.PATH ?? '')
  if (unrunnable !== null) return failed('configuration', unrunnable)
  session.base = { mirror, commit: base.commit }
  return { outcome: 'Preflight' }
}

const findBase = async (
  session: WorkerSession,
  command: Command,
): Promise<NonNullable<WorkerSession['base']> | Result> => {
  const mirror = await mirrorOf(session, command)
  if (typeof mirror !== 'string') throw new WorkerFault(mirror.detail)
  const base = await resolveBase(mirror, command.session.requested_base)
  return base.ok ? { mirror, commit: base.commit } : failed('configuration', base.detail)
}

/** Pins the base and makes the worktree; `start_commit` is known before anything runs in it. */
export const prepare = async (session: WorkerSession, command: Command): Promise<Result> => {
  const found = session.base ?? (await findBase(session, command))
  if ('outcome' in found) return found
  await pinBase(found.mirror, command.session.id, found.commit)
  const workspace = await openWorkspace({
    run: join(session.folder, 'run'),
    mirror: found.mirror,
    base: found.commit,
    signal: session.signal,
  })
  session.workspace = workspace
  return { outcome: 'Prepare', base: found.commit, start_commit: found.commit, tree: workspace.baseTree }
}

const filesOf = (tree: string): RepositoryFiles => {
  const isFile = (path: string) => statSync(join(tree, path), { throwIfNoEntry: false })?.isFile() ?? false
  const list = () =>
    readdirSync(tree, { withFileTypes: true }).flatMap((entry) => {
      if (entry.name === '.git') return []
      if (!entry.isDirectory()) return [entry.name]
      const below = readdirSync(join(tree, entry.name), { withFileTypes: true })
      return [
        `${entry.name}/`,
        ...below.map((inner) => `${entry.name}/${inner.name}${inner.isDirectory() ? '/' : ''}`),
      ]
    })
  return {
    has: (path) => statSync(join(tree, path), { throwIfNoEntry: false }) !== undefined,
    read: (path) => (isFile(path) ? readFileSync(join(tree, path), 'utf8') : null),
    list,
  }
}

/** The contract that was given, or one from what the repository declares. */
export const draft = async (session: WorkerSession, command: Command): Promise<Result> => {
  const { contract: given } = command.session
  if (given) {
    return {
      outcome: 'Draft',
      contract: given,
      provenance: 'operator_supplied',
      sources: [],
      warnings: contractWarnings(given),
    }
  }
  const workspace = await workspaceOf(session, command)
  const drafted = draftContract(filesOf(workspace.tree))
  if ('problem' in drafted) return failed('configuration', drafted.problem.detail)
  const { contract, sources } = drafted
  return {
    outcome: 'Draft',
    contract,
    provenance: 'runtime_generated',
    sources,
    warnings: contractWarnings(contract),
  }
}

/** Every check once on a checkout of its own, so that what the checks leave behind is in nobody's work. */
export const baseline = async (session: WorkerSession, command: Command): Promise<Result> => {
  const workspace = await workspaceOf(session, command)
  const tree = join(session.folder, 'baseline')
  await workspace.cleanCheckout(workspace.base, tree)
  try {
    const failure = await setUp(session, command, tree, 'setup-baseline')
    if (failure) return failure
    const { results, captures } = await evaluate(
      session,
      { ...command, captures: {} },
      { tree, what: 'baseline', phase: 'baseline' },
    )
    return { outcome: 'Baseline', results, captures }
  } finally {
    await removeTree(tree)
  }
}
