import { limits } from '../limits.ts'
import { git, records } from './git.ts'
import { showPath } from './path-text.ts'

/** Something in a tree that a plain checkout leaves incomplete. `detail` names it in words; `paths` are the first of `count`. */
export type TreeProblem = {
  kind: 'submodule' | 'lfs' | 'filter'
  paths: string[]
  count: number
  detail: string
}

type Entry = { mode: string; name: string; size: number; path: Buffer }

const entries = (output: Buffer): Entry[] =>
  records(output).map((record) => {
    const tab = record.indexOf(9)
    const [mode = '', , name = '', size = '0'] = record.subarray(0, tab).toString('latin1').split(/ +/)
    return { mode, name, size: Number(size) || 0, path: record.subarray(tab + 1) }
  })

const contents = async (
  mirror: string,
  wanted: Entry[],
  signal: AbortSignal | undefined,
): Promise<Map<string, string>> => {
  const found = new Map<string, string>()
  if (wanted.length === 0) return found
  const input = `${[...new Set(wanted.map((entry) => entry.name))].join('\n')}\n`
  const { stdout } = await git(['cat-file', '--batch'], { gitDir: mirror, input, signal })
  for (let at = 0; at < stdout.length; ) {
    const line = stdout.indexOf(10, at)
    const [name = '', , size = '0'] = stdout.subarray(at, line).toString('latin1').split(' ')
    found.set(name, stdout.subarray(line + 1, line + 1 + Number(size)).toString('latin1'))
    at = line + 2 + Number(size)
  }
  return found
}

const pointer = 'version https://git-lfs.github.com/spec/v1\n'
/** An LFS pointer without extensions has a fixed shape and so nearly a fixed size. */
const mayBePointer = ({ mode, size }: Entry): boolean => mode.startsWith('100') && size >= 120 && size <= 160
const isAttributes = ({ mode, size, path }: Entry): boolean =>
  mode.startsWith('100') && size < 1024 * 1024 && /(^|\/)\.gitattributes$/.test(path.toString('latin1'))

const problem = (kind: TreeProblem['kind'], found: Entry[], sentence: string): TreeProblem[] => {
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
  const listing = await git(['ls-tree', '-r', '-z', '--long', '--full-tree', commit], {
    gitDir: mirror,
    signal,
  })
  const all = entries(listing.stdout)
  const text = await contents(
    mirror,
    all.filter((entry) => mayBePointer(entry) || isAttributes(entry)),
    signal,
  )
  const holds = (entry: Entry, pattern: RegExp) => pattern.test(text.get(entry.name) ?? '')
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
          (mayBePointer(entry) && (text.get(entry.name) ?? '').startsWith(pointer)) ||
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
