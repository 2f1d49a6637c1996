import { createHash, randomUUID } from 'node:crypto'
import { access, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { GatehouseError } from '../errors.ts'
import { limits } from '../limits.ts'
import {
  type Advertised,
  type ContactProblem,
  contactProblem,
  farSide,
  readAdvertised,
  unreachedOnTimeout,
} from './advertised.ts'
import type { Failure } from './failure.ts'
import { git } from './git.ts'
import type { Credentials } from './git-environment.ts'
import { linkObjects } from './link-objects.ts'
import { withLock } from './lock.ts'
import { endOrphan, expectChild, forgetChild, noteChild, sweepLeftovers } from './orphan.ts'
import { removeTree } from './remove-tree.ts'
import type { Repository } from './repository-address.ts'
import { writeSkeleton } from './skeleton.ts'

/** The mirror's own ref that holds the commit of the repository's HEAD; our refs live below `refs/gatehouse/`. */
export const mirrorHead = 'refs/gatehouse/head'

export type Mirror = {
  ok: true
  directory: string
  /** The repository's HEAD; null when it names a branch without commits, `ref` null when it is detached. */
  head: { ref: string | null; commit: string } | null
}

const create = async (directory: string, nameLength: number): Promise<void> => {
  const made = await access(join(directory, 'HEAD')).then(
    () => true,
    () => false,
  )
  if (made) return
  const unfinished = `${directory}.${randomUUID()}`
  await writeSkeleton(unfinished, { head: mirrorHead, nameLength })
  await rename(unfinished, directory).catch(async (error: unknown) => {
    await removeTree(unfinished)
    await access(join(directory, 'HEAD')).catch(() => {
      throw error
    })
  })
}

const isCurrent = async (directory: string, seen: Advertised): Promise<boolean> => {
  const listing = await git(['for-each-ref', '--format=%(objectname) %(refname)'], { gitDir: directory })
  const wanted = new Map(seen.refs)
  for (const name of wanted.keys()) if (name.startsWith('refs/gatehouse/')) wanted.delete(name)
  if (seen.head !== null) wanted.set(mirrorHead, seen.head.commit)
  let same = 0
  for (const line of listing.stdout.toString('latin1').split('\n')) {
    const [commit, name] = [line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1)]
    if (name === '' || (name.startsWith('refs/gatehouse/') && name !== mirrorHead)) continue
    if (wanted.get(name) !== commit) return false
    same++
  }
  return same === wanted.size
}

const isEmpty = async (directory: string): Promise<boolean> =>
  (await git(['for-each-ref', '--count=1'], { gitDir: directory })).stdout.length === 0

type FetchOptions = {
  /** The worker's data folder. */
  home: string
  repository: Repository
  credentials?: Credentials | undefined
  signal?: AbortSignal | undefined
}

const fetchInto = async (
  directory: string,
  seen: Advertised,
  note: string,
  { repository, credentials, signal }: FetchOptions,
): Promise<Failure<ContactProblem> | null> => {
  if (seen.head === null) await rm(join(directory, mirrorHead), { force: true })
  expectChild(note)
  try {
    const answer = await git(
      [
        'fetch',
        ...['--quiet', '--prune', '--no-tags', '--no-auto-maintenance', '--no-write-fetch-head'],
        ...['--update-shallow', '--no-recurse-submodules', ...farSide(repository), '--', repository.url],
        '+refs/*:refs/*',
        '^refs/gatehouse/*',
        ...(seen.head === null ? [] : [`+HEAD:${mirrorHead}`]),
      ],
      {
        gitDir: directory,
        allow: [0, 1, 128],
        timeoutMs: limits.gitRemoteTimeoutMs,
        remote: { url: repository.url, credentials },
        signal,
        onSpawn: (pid) => noteChild(note, pid),
      },
    )
    return answer.exitCode === 0 ? null : contactProblem(repository, answer)
  } catch (error) {
    return unreachedOnTimeout(repository, error)
  }
}

/** The folder of a repository's mirror; `nameLength` is that of its object names in hexadecimal. */
const directoryOf = (
  { home, repository }: Pick<FetchOptions, 'home' | 'repository'>,
  nameLength: number,
): string => {
  const hash = createHash('sha256').update(repository.url).digest('hex').slice(0, 32)
  return join(home, 'mirrors', `${hash}${nameLength === 64 ? '-sha256' : ''}.git`)
}

/**
 * Brings the bare mirror of a repository up to date, making it first if need be, and returns its folder. It holds every
 * ref that the repository advertises, pruned; one that is killed half-way is taken up by the next call. Mirrors are
 * shared: calls for one repository take turns across processes. Throws GitError on abort, LockTimeout after the remote
 * time limit.
 */
export const fetchMirror = async (options: FetchOptions): Promise<Mirror | Failure<ContactProblem>> => {
  const seen = await readAdvertised(options)
  if (!seen.ok) return seen
  const nameLength = (seen.head?.commit ?? seen.refs.values().next().value ?? '').length === 64 ? 64 : 40
  const directory = directoryOf(options, nameLength)
  const note = `${directory}.fetching`
  await mkdir(dirname(directory), { recursive: true })
  await create(directory, nameLength)
  const lock = { waitMs: limits.gitRemoteTimeoutMs, signal: options.signal }
  const problem = await withLock(`${directory}.lock`, lock, async () => {
    if (await endOrphan(note)) await sweepLeftovers(directory)
    else if (await isCurrent(directory, seen)) return null
    if (seen.refs.size > 0 && (await isEmpty(directory)))
      await linkObjects(options.repository, join(directory, 'objects'), options.signal)
    const failed = await fetchInto(directory, seen, note, options)
    // Every way out of git's own hands has tidied up; a note that stays makes the next call tidy instead.
    if (failed === null) forgetChild(note)
    return failed
  })
  return problem ?? { ok: true, directory, head: seen.head }
}

const pin = (mirror: string, sessionId: string): string => {
  if (!/^[A-Za-z0-9_]+$/.test(sessionId)) throw new GatehouseError('internal', 'This is no session id.')
  return join(mirror, 'refs', 'gatehouse', 'pins', sessionId)
}

/** Keeps a session's base reachable in the mirror, whatever the repository does to its branches. */
export const pinBase = async (mirror: string, sessionId: string, commit: string): Promise<void> => {
  const ref = pin(mirror, sessionId)
  const unfinished = join(mirror, `pin-${randomUUID()}`)
  await mkdir(join(mirror, 'refs', 'gatehouse', 'pins'), { recursive: true })
  await writeFile(unfinished, `${commit}\n`)
  await rename(unfinished, ref)
}

/** The mirror in which a session's base is pinned; null on a machine that has none. Asks nobody but the disk. */
export const pinnedMirror = async (options: {
  home: string
  repository: Repository
  sessionId: string
  commit: string
}): Promise<string | null> => {
  const directory = directoryOf(options, options.commit.length)
  const pinned = await readFile(pin(directory, options.sessionId), 'utf8').catch(() => '')
  return pinned.trim() === options.commit ? directory : null
}

const unpin = async (mirror: string, sessionId: string): Promise<void> => {
  await rm(pin(mirror, sessionId), { force: true })
  // A mirror that somebody has packed by hand holds the pin there as well.
  const packed = await readFile(join(mirror, 'packed-refs'), 'latin1').catch(() => '')
  const ref = `refs/gatehouse/pins/${sessionId}`
  if (packed.includes(` ${ref}\n`)) await git(['update-ref', '-d', ref], { gitDir: mirror })
}

/**
 * Lets go of a session's base in every mirror of its repository, which may have changed the length of its object names;
 * harmless where no base is pinned and where there is no mirror.
 */
export const unpinBase = async (options: {
  /** The worker's data folder. */
  home: string
  repository: Repository
  sessionId: string
}): Promise<void> => {
  for (const nameLength of [40, 64]) await unpin(directoryOf(options, nameLength), options.sessionId)
}
