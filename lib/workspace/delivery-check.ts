import { constants } from 'node:fs'
import { access, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { shortId } from '../ids.ts'
import { type ContactProblem, readAdvertised } from './advertised.ts'
import { type DeliveryProblem, type Failure, failure } from './failure.ts'
import { git } from './git.ts'
import type { Credentials } from './git-environment.ts'
import { type LocalPlaces, locate } from './local.ts'
import type { Repository } from './repository-address.ts'

/** The branch that a session delivers to. */
export const branchName = (sessionId: string): string => `gatehouse/${shortId(sessionId)}`

export type DeliveryTarget = {
  repository: Repository
  branch: string
  credentials?: Credentials | undefined
  signal?: AbortSignal | undefined
  /** A ref of the repository (`refs/heads/main`) that has to be at this commit still, else `base_moved`. */
  expected?: { ref: string; commit: string } | undefined
}

/** What stands where a branch is to be made: nothing, or what we would put there. */
export type Standing = { ok: true; status: 'free' | 'already_there' }

const folders = (ref: string): string[] => {
  const parts = ref.split('/')
  return parts.slice(3).map((_, index) => parts.slice(0, index + 3).join('/'))
}

/** Refs that decide whether a branch can be made: itself, its folders, and what lies below it. */
const patterns = (target: DeliveryTarget): string[] => {
  const ref = `refs/heads/${target.branch}`
  return [ref, `${ref}/*`, ...folders(ref), ...(target.expected === undefined ? [] : [target.expected.ref])]
}

/** Decides from the refs that are there whether `branch` can be made at `commit` (null: not known yet). Pure. */
const judge = (
  refs: ReadonlyMap<string, string>,
  target: Pick<DeliveryTarget, 'branch' | 'expected'>,
  commit: string | null,
): Standing | Failure<'branch_exists' | 'ref_clash' | 'base_moved'> => {
  const ref = `refs/heads/${target.branch}`
  const there = refs.get(ref)
  if (there !== undefined)
    return there === commit
      ? { ok: true, status: 'already_there' }
      : failure('branch_exists', `The branch ${target.branch} is there already, at ${there}.`)
  const above = folders(ref).find((name) => refs.has(name))
  const below = [...refs.keys()].find((name) => name.startsWith(`${ref}/`))
  const clash = above ?? below
  if (clash !== undefined)
    return failure(
      'ref_clash',
      `The branch ${target.branch} cannot be made while there is a branch ${clash.slice('refs/heads/'.length)}; rename that one.`,
    )
  const { expected } = target
  if (expected !== undefined && refs.get(expected.ref) !== expected.commit)
    return failure('base_moved', `${expected.ref} is no longer at ${expected.commit}.`)
  return { ok: true, status: 'free' }
}

export type LocalRepository = { ok: true } & LocalPlaces

export const findLocal = async (
  repository: Repository,
  signal: AbortSignal | undefined,
): Promise<LocalRepository | Failure<'not_a_repository' | 'rejected'>> => {
  const missing = failure('not_a_repository', `${repository.display} is no git repository.`)
  const path = await realpath(repository.url).catch(() => null)
  if (path === null) return missing
  const found = await locate(path, signal)
  if (found === null) return missing
  const { gitDir, objects } = found
  try {
    for (const folder of [join(gitDir, 'refs', 'heads'), objects]) await access(folder, constants.W_OK)
  } catch {
    return failure('rejected', `${repository.display} cannot be written to by this worker.`)
  }
  return { ok: true, gitDir, objects }
}

const localRefs = async (gitDir: string, target: DeliveryTarget): Promise<Map<string, string>> => {
  const wanted = patterns(target).map((pattern) => pattern.replace(/\/\*$/, ''))
  const { stdout } = await git(['for-each-ref', '--format=%(objectname) %(refname)', '--', ...wanted], {
    gitDir,
    signal: target.signal,
  })
  const lines = stdout.toString('latin1').split('\n').filter(Boolean)
  return new Map(lines.map((line) => [line.slice(line.indexOf(' ') + 1), line.slice(0, line.indexOf(' '))]))
}

/** Looks at a path repository that was found. */
export const lookLocal = async (gitDir: string, target: DeliveryTarget, commit: string | null) =>
  judge(await localRefs(gitDir, target), target, commit)

/** Looks at a remote. */
export const lookRemote = async (
  target: DeliveryTarget,
  commit: string | null,
): Promise<Standing | Failure<ContactProblem | 'branch_exists' | 'ref_clash' | 'base_moved'>> => {
  const seen = await readAdvertised({ ...target, patterns: patterns(target) })
  return seen.ok ? judge(seen.refs, target, commit) : seen
}

/**
 * Whether a branch could be delivered now, by looking only: the branch, names that exclude it, and rights on a path
 * repository (a remote tells its rights at the push alone). `commit` is what would be delivered, null when not known.
 */
export const checkDeliverable = async (
  target: DeliveryTarget,
  commit: string | null = null,
): Promise<Standing | Failure<DeliveryProblem>> => {
  if (target.repository.kind === 'remote') return lookRemote(target, commit)
  const found = await findLocal(target.repository, target.signal)
  return found.ok ? lookLocal(found.gitDir, target, commit) : found
}
