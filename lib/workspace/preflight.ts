import { limits } from '../limits.ts'
import { showPath } from './path-text.ts'
import { listFiles, readBlobs, type TreeEntry } from './tree-files.ts'

/** Something in a tree that a plain checkout leaves incomplete. `detail` names it in words; `paths` are the first of `count`. */
export type TreeProblem = {
  kind: 'submodule' | 'lfs' | 'filter'
  paths: string[]
  count: number
  detail: string
}

const pointer = 'version https://git-lfs.github.com/spec/v1\n'
/** An LFS pointer without extensions has a fixed shape and so nearly a fixed size. */
const mayBePointer = ({ mode, size }: TreeEntry): boolean =>
  mode.startsWith('100') && size >= 120 && size <= 160
const isAttributes = ({ mode, size, path }: TreeEntry): boolean =>
  mode.startsWith('100') && size < 1024 * 1024 && /(^|\/)\.gitattributes$/.test(path.toString('latin1'))

const problem = (kind: TreeProblem['kind'], found: TreeEntry[], sentence: string): TreeProblem[] => {
  if (found.length === 0) return []
  const paths = found.slice(0, limits.namedPaths).map((entry) => showPath(entry.path))
  const more = found.length > paths.length ? ` and ${found.length - paths.length} more` : ''
  return [{ kind, paths, count: found.length, detail: `${sentence}: ${paths.join(', ')}${more}.` }]
}

/** What a checkout of this commit would lack: submodules, LFS content, and content behind other filters. */
export const preflightTree = async (
  mirror: string,
  commit: string,
  signal?: AbortSignal,
): Promise<TreeProblem[]> => {
  const from = { gitDir: mirror, signal }
  const all = await listFiles(from, commit)
  const read = all.filter((entry) => mayBePointer(entry) || isAttributes(entry))
  const held = await readBlobs(
    from,
    read.map(({ name }) => name),
  )
  const textOf = (entry: TreeEntry): string => held.get(entry.name)?.toString('latin1') ?? ''
  const holds = (entry: TreeEntry, pattern: RegExp) => pattern.test(textOf(entry))
  const attributes = all.filter(isAttributes)
  return [
    ...problem(
      'submodule',
      all.filter((entry) => entry.mode === '160000' || entry.path.equals(Buffer.from('.gitmodules'))),
      'Submodules are not checked out',
    ),
    ...problem(
      'lfs',
      all.filter(
        (entry) =>
          (mayBePointer(entry) && textOf(entry).startsWith(pointer)) ||
          (isAttributes(entry) && holds(entry, /^[^#\n]*\sfilter=lfs(\s|$)/m)),
      ),
      'Content in Git LFS is not fetched',
    ),
    ...problem(
      'filter',
      attributes.filter((entry) => holds(entry, /^[^#\n]*\sfilter=(?!lfs(\s|$))\S/m)),
      'Filters named in attributes are not run, so such files stay as they are stored',
    ),
  ]
}
