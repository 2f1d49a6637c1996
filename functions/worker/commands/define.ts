import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { draftContract, type RepositoryFiles } from '../../../lib/contract/draft.ts'
import { contractWarnings } from '../../../lib/contract/validate.ts'
import { engineRunnable } from '../../../lib/engine/runnable.ts'
import { limits } from '../../../lib/limits.ts'
import type { Command, Result } from '../../../lib/session/protocol.ts'
import type { FailureKind } from '../../../lib/session/states.ts'
import { firstOf } from '../../../lib/text/shorten.ts'
import { visible } from '../../../lib/text/visible.ts'
import { resolveBase } from '../../../lib/workspace/base.ts'
import { branchName, checkDeliverable } from '../../../lib/workspace/delivery-check.ts'
import { pinBase } from '../../../lib/workspace/mirror.ts'
import { preflightTree } from '../../../lib/workspace/preflight.ts'
import type { Place } from '../../../lib/workspace/surroundings/place.ts'
import { uncommittedWarnings } from '../../../lib/workspace/uncommitted.ts'
import { contractOf, evaluate, setUp, withoutSetup } from '../evaluate.ts'
import { mirrorOf, openAt, repositoryOf, WorkerFault, type WorkerSession, workspaceOf } from '../session.ts'

const failed = (failure_kind: FailureKind, error: string): Result => ({
  outcome: 'failed',
  failure_kind,
  error: firstOf(visible(error), limits.reason),
})

/** What a repository's own failure means for the session. */
const kindOf = (problem: string): FailureKind => {
  if (problem === 'authentication') return 'auth_required'
  return problem === 'unreachable' ? 'infrastructure' : 'configuration'
}

type Problem = Extract<Result, { outcome: 'Preflight' }>['problems'][number]

const problem = (failure_kind: FailureKind, detail: string): Problem => ({
  failure_kind,
  detail: firstOf(visible(detail), limits.reason),
})

const engineProblems = (session: WorkerSession, { session: { engine_command: engine } }: Command) => {
  const why =
    engine === null ? 'the session names no engine command' : engineRunnable(engine, session.env.PATH ?? '')
  return why === null ? [] : [problem('configuration', `The engine cannot be started: ${why}.`)]
}

const branchProblems = async (session: WorkerSession, command: Command): Promise<Problem[]> => {
  const standing = await checkDeliverable({
    repository: repositoryOf(command),
    branch: branchName(command.session.id),
    signal: session.signal,
  })
  return standing.ok ? [] : [problem(kindOf(standing.problem), standing.detail)]
}

const treeProblems = async (session: WorkerSession, mirror: string, commit: string): Promise<Problem[]> =>
  (await preflightTree(mirror, commit, session.signal)).map(({ detail }) => problem('configuration', detail))

/** What of the repository is missing; one that can't be read says nothing of its base or its branches. */
const repositoryProblems = async (session: WorkerSession, command: Command): Promise<Problem[]> => {
  const mirror = await mirrorOf(session, command)
  if (typeof mirror !== 'string') return [problem(kindOf(mirror.problem), mirror.detail)]
  const base = await resolveBase(mirror, command.session.requested_base, session.signal)
  if (base.ok) session.base = { mirror, commit: base.commit }
  const [ofTree, ofBranch] = await Promise.all([
    base.ok ? treeProblems(session, mirror, base.commit) : [problem('configuration', base.detail)],
    branchProblems(session, command),
  ])
  return [...ofTree, ...ofBranch]
}

/**
 * All that is missing for a start, together: repository reachable, base resolves, tree can be checked out whole, branch can
 * be made, engine can run.
 */
export const preflight = async (session: WorkerSession, command: Command): Promise<Result> => ({
  outcome: 'Preflight',
  problems: [...(await repositoryProblems(session, command)), ...engineProblems(session, command)],
})

/** A repository that can't be reached may be there the next time; one that refuses stays as it is. */
const findBase = async (
  session: WorkerSession,
  command: Command,
): Promise<NonNullable<WorkerSession['base']> | Result> => {
  const mirror = await mirrorOf(session, command)
  if (typeof mirror !== 'string') {
    if (mirror.problem === 'unreachable') throw new WorkerFault(mirror.detail)
    return failed(kindOf(mirror.problem), mirror.detail)
  }
  const base = await resolveBase(mirror, command.session.requested_base, session.signal)
  return base.ok ? { mirror, commit: base.commit } : failed('configuration', base.detail)
}

/**
 * Pins the base and makes the worktree, with the work that the session goes on from where there is some; `start_commit` is
 * known before anything runs in it.
 */
export const prepare = async (session: WorkerSession, command: Command): Promise<Result> => {
  const found = session.base ?? (await findBase(session, command))
  if ('outcome' in found) return found
  await pinBase(found.mirror, command.session.id, found.commit)
  const workspace = await openAt(session, command, found.mirror, found.commit)
  session.workspace = workspace
  const warnings = await uncommittedWarnings({
    ...{
      repository: repositoryOf(command),
      mirror: found.mirror,
      commit: found.commit,
      signal: session.signal,
    },
    scratch: join(session.folder, 'source-index'),
  })
  const { commit } = found
  return { outcome: 'Prepare', base: commit, start_commit: commit, tree: workspace.baseTree, warnings }
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

/** Does something on a checkout of the untouched base that is only for this. */
const onBase = async <Value>(
  session: WorkerSession,
  command: Command,
  name: string,
  work: (place: Place) => Promise<Value>,
): Promise<Value> => {
  const workspace = await workspaceOf(session, command)
  const { place } = await session.places.open(name, (tree) => workspace.cleanCheckout(workspace.base, tree))
  try {
    return await work(place)
  } finally {
    await place.close()
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
  const drafted = await onBase(session, command, 'draft', async ({ tree }) => draftContract(filesOf(tree)))
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
export const baseline = (session: WorkerSession, command: Command): Promise<Result> =>
  onBase(session, command, 'baseline', async (place) => {
    const failed = await setUp(session, command, place, 'setup-baseline')
    if (failed && 'ended' in failed) return failed.ended
    if (failed) {
      const results = withoutSetup(contractOf(command), failed.failure)
      return {
        outcome: 'Baseline',
        results,
        captures: {},
        setup_problem: failed.failure.detail.slice(0, limits.reason),
      }
    }
    const { results, captures } = await evaluate(
      session,
      { ...command, captures: {} },
      { place, what: 'baseline', phase: 'baseline' },
    )
    return { outcome: 'Baseline', results, captures }
  })
