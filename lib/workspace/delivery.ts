import { join } from 'node:path'
import { limits } from '../limits.ts'
import { contactProblem, unreachedOnTimeout } from './advertised.ts'
import {
  type DeliveryTarget,
  findLocal,
  type LocalRepository,
  lookLocal,
  lookRemote,
} from './delivery-check.ts'
import { type DeliveryProblem, type Failure, failure } from './failure.ts'
import { GitError, git, gitWord } from './git.ts'
import { handOver } from './hand-over.ts'

export type Delivery = DeliveryTarget & {
  /** Our repository that holds the commit (`workspace.gitDirectory`). */
  gitDirectory: string
  /** The commit that `commit` builds on. */
  base: string
  commit: string
}

export type Delivered = { ok: true; status: 'delivered' | 'already_there'; branch: string; commit: string }

type Outcome = Delivered | Failure<DeliveryProblem>

const done = ({ branch, commit }: Delivery, status: Delivered['status']): Delivered => ({
  ok: true,
  status,
  branch,
  commit,
})

/** True when everything that the base reaches is kept in that repository by its own refs or is there in full. */
const holdsBase = async (found: LocalRepository, { base, signal }: Delivery): Promise<boolean> => {
  const walk = ['--objects', '--quiet', '--exclude-promisor-objects', base, '--not', '--all']
  const answer = await git(['rev-list', ...walk], { gitDir: found.gitDir, allow: [0, 1, 128], signal })
  return answer.exitCode === 0
}

/** How a repository wants its files to be shared (`core.sharedRepository`), as an option for a git of ours. */
const sharing = async (found: LocalRepository, signal: AbortSignal | undefined): Promise<string[]> => {
  const name = 'core.sharedRepository'
  const value = await gitWord(['config', '--get', name], {
    gitDir: found.gitDir,
    allow: [0, 1, 3, 128],
    signal,
  })
  return /^\w+$/.test(value) ? ['-c', `${name}=${value}`] : []
}

const packFiles = ['pack', 'idx', 'rev']

/** One pack, written into their objects by our git directory, so their config has no say but in who may read it. */
const copyObjects = async (found: LocalRepository, delivery: Delivery): Promise<void> => {
  const packed = await gitWord(
    [
      ...(await sharing(found, delivery.signal)),
      ...['pack-objects', '--quiet', '--revs', '--delta-base-offset', join(found.objects, 'pack', 'pack')],
    ],
    {
      gitDir: delivery.gitDirectory,
      objects: found.objects,
      input: `${delivery.commit}\n^${delivery.base}\n`,
      signal: delivery.signal,
    },
  )
  const names = packed.split('\n').flatMap((hash) => packFiles.map((end) => [`pack-${hash}.${end}`]))
  await handOver(found.gitDir, join(found.objects, 'pack'), names)
}

/** The branch is there: so are its folders, and they are the owner's. */
const delivered = async (
  found: LocalRepository,
  delivery: Delivery,
  status: Delivered['status'],
): Promise<Delivered> => {
  await handOver(found.gitDir, join(found.gitDir, 'refs', 'heads'), [delivery.branch.split('/')])
  return done(delivery, status)
}

const deliverToPath = async (delivery: Delivery): Promise<Outcome> => {
  const found = await findLocal(delivery.repository, delivery.signal)
  if (!found.ok) return found
  const look = () => lookLocal(found.gitDir, delivery, delivery.commit)
  const [standing, based] = await Promise.all([look(), holdsBase(found, delivery)])
  if (!standing.ok) return standing
  if (standing.status === 'already_there') return delivered(found, delivery, 'already_there')
  if (!based)
    return failure('base_moved', `${delivery.repository.display} no longer holds the base ${delivery.base}.`)
  await copyObjects(found, delivery)
  const made = await git(['update-ref', '--stdin'], {
    gitDir: found.gitDir,
    input: `create refs/heads/${delivery.branch} ${delivery.commit}\n`,
    allow: [0, 1, 128],
    signal: delivery.signal,
  })
  if (made.exitCode === 0) return delivered(found, delivery, 'delivered')
  const again = await look()
  if (!again.ok) return again
  if (again.status === 'already_there') return delivered(found, delivery, 'already_there')
  return failure('rejected', `The branch ${delivery.branch} could not be made: ${made.stderr}`)
}

/** The reason on the line that `--porcelain` marks as refused, null when the push did not come that far. */
const refusal = (output: string): string | null =>
  output
    .split('\n')
    .find((line) => line.startsWith('!\t'))
    ?.split('\t')
    .at(-1) ?? null

const push = (delivery: Delivery) => {
  const ref = `refs/heads/${delivery.branch}`
  return git(
    [
      'push',
      ...['--porcelain', '--no-verify', '--no-follow-tags', '--recurse-submodules=no'],
      // An empty expectation: the ref must not be there, so nothing is ever updated.
      `--force-with-lease=${ref}:`,
      '--',
      delivery.repository.url,
      `${delivery.commit}:${ref}`,
    ],
    {
      gitDir: delivery.gitDirectory,
      allow: [0, 1, 128],
      timeoutMs: limits.gitRemoteTimeoutMs,
      remote: { url: delivery.repository.url, credentials: delivery.credentials },
      signal: delivery.signal,
    },
  )
}

const deliverToRemote = async (delivery: Delivery): Promise<Outcome> => {
  const standing = await lookRemote(delivery, delivery.commit)
  if (!standing.ok) return standing
  if (standing.status === 'already_there') return done(delivery, 'already_there')
  const pushed = await push(delivery).catch((error: unknown) =>
    error instanceof GitError && error.kind === 'timeout'
      ? unreachedOnTimeout(delivery.repository, error)
      : Promise.reject(error),
  )
  if ('exitCode' in pushed && pushed.exitCode === 0) return done(delivery, 'delivered')
  const again = await lookRemote(delivery, delivery.commit)
  if (again.ok && again.status === 'already_there') return done(delivery, 'delivered')
  if (!('exitCode' in pushed)) return pushed
  const reason = refusal(pushed.stdout.toString('utf8'))
  if (reason === null) return contactProblem(delivery.repository, pushed)
  if (!again.ok) return again
  return failure(
    'rejected',
    `${delivery.repository.display} refused the branch: ${reason} ${pushed.stderr}`.trim(),
  )
}

/** A narrower rule than git's own: plain words between slashes. */
const isBranchName = (branch: string): boolean =>
  /^[A-Za-z0-9_][\w.-]*(\/[A-Za-z0-9_][\w.-]*)*$/.test(branch) && !/\.\.|\.lock(\/|$)|\.(\/|$)/.test(branch)

/**
 * Makes one new branch at a commit, in a path repository or by a push, and never moves one that is there. A repeat after
 * success answers `already_there`. A path repository gains objects and that ref only: its config, hooks, index, files and
 * other refs take no part. Throws GitError on abort or when our own repository fails.
 */
export const deliverBranch = async (delivery: Delivery): Promise<Outcome> => {
  if (!isBranchName(delivery.branch))
    return failure('rejected', `"${delivery.branch}" is no name for a branch.`)
  return delivery.repository.kind === 'local' ? deliverToPath(delivery) : deliverToRemote(delivery)
}
