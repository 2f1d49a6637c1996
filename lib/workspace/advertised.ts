import { stat } from 'node:fs/promises'
import { type Failure, failure } from './failure.ts'
import { GitError, git } from './git.ts'
import type { Credentials } from './git-environment.ts'
import { repositoryAround } from './local.ts'
import type { Repository } from './repository-address.ts'

/** What a repository says it has. Ref names are bytes read as Latin-1, so none is altered. */
export type Advertised = {
  ok: true
  refs: Map<string, string>
  /** Null when HEAD names a branch without commits; `ref` is null when HEAD is detached. */
  head: { ref: string | null; commit: string } | null
}

export type ContactProblem = 'not_a_repository' | 'unreachable' | 'authentication'

/** Serves a path repository at command scope, so its owner may be someone else and its config starts nothing. */
const localUploadPack = [
  'git',
  '-c safe.directory="*"',
  '-c core.hooksPath=/dev/null',
  '-c core.fsmonitor=false',
  '-c core.alternateRefsCommand=true',
  'upload-pack',
].join(' ')

/** Arguments that name the far side of a fetch or a look. */
export const farSide = (repository: Repository): string[] =>
  repository.kind === 'local' ? [`--upload-pack=${localUploadPack}`] : []

/**
 * Sorts a refusal of the far side by what can be told without its prose: the HTTP status it answered. Only ssh says
 * nothing but prose, and there the words of OpenSSH are the one hint.
 */
export const contactProblem = (
  repository: Repository,
  answer: { stderr: string; httpStatus: number | null },
): Failure<ContactProblem> => {
  const said = answer.stderr === '' ? 'it gave no reason' : answer.stderr
  const { httpStatus } = answer
  if (repository.kind === 'local')
    return failure('not_a_repository', `${repository.display} cannot be read as a git repository: ${said}`)
  if (httpStatus === 401 || httpStatus === 403 || httpStatus === 407)
    return failure(
      'authentication',
      `${repository.display} refused the credentials or they have expired (HTTP ${httpStatus}).`,
    )
  if (httpStatus === 404 || httpStatus === 410 || httpStatus === 200)
    return failure(
      'not_a_repository',
      `${repository.display} is no repository that these credentials can see.`,
    )
  if (httpStatus === null && repository.url.startsWith('ssh:') && /^.*Permission denied \(/m.test(said))
    return failure('authentication', `${repository.display} refused the key: ${said}`)
  return failure('unreachable', `${repository.display} cannot be reached: ${said}`)
}

/** A time limit that ran out on the far side is a failure to reach it; everything else goes on up. */
export const unreachedOnTimeout = (repository: Repository, error: unknown): Failure<'unreachable'> => {
  if (error instanceof GitError && error.kind === 'timeout')
    return failure('unreachable', `${repository.display} did not answer in time.`)
  throw error
}

const parse = (output: string): Advertised => {
  const refs = new Map<string, string>()
  let headRef: string | null = null
  let headCommit: string | null = null
  for (const line of output.split('\n')) {
    const tab = line.indexOf('\t')
    if (tab === -1) continue
    const [value, name] = [line.slice(0, tab), line.slice(tab + 1)]
    if (name.endsWith('^{}')) continue
    if (name !== 'HEAD') {
      if (!value.startsWith('ref: ')) refs.set(name, value)
    } else if (value.startsWith('ref: ')) headRef = value.slice(5)
    else headCommit = value
  }
  return { ok: true, refs, head: headCommit === null ? null : { ref: headRef, commit: headCommit } }
}

/** Asks a repository for its refs (all, or those that match), reading nothing else and writing nothing. */
export const readAdvertised = async (options: {
  repository: Repository
  patterns?: string[]
  credentials?: Credentials | undefined
  signal?: AbortSignal | undefined
  timeoutMs?: number
}): Promise<Advertised | Failure<ContactProblem>> => {
  const { repository } = options
  if (repository.kind === 'local') {
    const found = await stat(repository.url).catch(() => null)
    if (found === null)
      return failure('not_a_repository', `There is no folder ${repository.display} that can be read here.`)
  }
  try {
    const answer = await git(
      ['ls-remote', '--symref', ...farSide(repository), '--', repository.url, ...(options.patterns ?? [])],
      {
        allow: [0, 1, 128],
        remote: { url: repository.url, credentials: options.credentials },
        signal: options.signal,
        ...(options.timeoutMs === undefined ? {} : { timeoutMs: options.timeoutMs }),
      },
    )
    if (answer.exitCode !== 0) {
      const around =
        repository.kind === 'local' ? await repositoryAround(repository.url, options.signal) : null
      return around === null
        ? contactProblem(repository, answer)
        : failure(
            'not_a_repository',
            `${repository.display} lies inside the repository ${around}; give that one.`,
          )
    }
    return parse(answer.stdout.toString('latin1'))
  } catch (error) {
    return unreachedOnTimeout(repository, error)
  }
}
