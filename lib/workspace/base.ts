import { type Failure, failure } from './failure.ts'
import { git } from './git.ts'
import { mirrorHead } from './mirror.ts'

export type ResolvedBase = { ok: true; commit: string }

const answers = (output: string): (string[] | null)[] =>
  output
    .trimEnd()
    .split('\n')
    .map((line) => /^([0-9a-f]{40,64}) (\w+) \d+$/.exec(line)?.slice(1) ?? null)

/**
 * The full commit that a base names in the mirror: any commit-ish, or the repository's HEAD when null. The name travels
 * on standard input, so that nothing in it can be taken for an option.
 */
export const resolveBase = async (
  mirror: string,
  base: string | null,
  signal?: AbortSignal,
): Promise<ResolvedBase | Failure<'no_commits' | 'base_not_found'>> => {
  const name = base ?? mirrorHead
  if (name === '' || /\p{Cc}/u.test(name))
    return failure('base_not_found', 'The base is not a name of a commit.')
  const looked = await git(['cat-file', '--batch-check'], {
    gitDir: mirror,
    signal,
    input: `${name}^{commit}\n${name}\n${mirrorHead}\n`,
  })
  const [commit, object, head] = answers(looked.stdout.toString('latin1'))
  if (commit?.[0] !== undefined) return { ok: true, commit: commit[0] }
  // A search such as `:/text` takes the suffix for its own.
  if (object?.[0] !== undefined && object[1] === 'commit') return { ok: true, commit: object[0] }
  if (base === null)
    return failure('no_commits', 'The repository has no commits on its HEAD; make one first or name a base.')
  if (object?.[1] !== undefined)
    return failure('base_not_found', `The base "${base}" names a ${object[1]}, not a commit.`)
  if (
    head === null &&
    (await git(['for-each-ref', '--count=1'], { gitDir: mirror, signal })).stdout.length === 0
  )
    return failure('no_commits', 'The repository has no commits yet; make one first.')
  return failure('base_not_found', `The base "${base}" names no commit of this repository, or more than one.`)
}
