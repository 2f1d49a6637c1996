import { git, records } from './git.ts'
import { showPath } from './path-text.ts'
import { onObjects, type Run } from './run-folder.ts'

/** One path that a commit changes from the base. Paths are in the printable form of `showPath`. */
export type ChangedPath = {
  path: string
  /** Where a renamed file was before. */
  old_path: string | null
  status: 'added' | 'modified' | 'deleted' | 'renamed' | 'type_changed'
  binary: boolean
  /** Lines; null for a binary file, which has none. */
  insertions: number | null
  deletions: number | null
  /** Octal file modes as git writes them; `000000` is absence. */
  old_mode: string
  new_mode: string
}

/** `files` counts both ends of a rename; lines of binary files are not counted. */
export type ChangeStat = { files: number; insertions: number; deletions: number }

export type Changes = { paths: ChangedPath[]; stat: ChangeStat }

const statuses: Record<string, ChangedPath['status']> = {
  A: 'added',
  M: 'modified',
  D: 'deleted',
  R: 'renamed',
  T: 'type_changed',
}

type Raw = Pick<ChangedPath, 'path' | 'old_path' | 'status' | 'old_mode' | 'new_mode'>

const lines = (text: string | undefined): number | null =>
  text === undefined || text === '-' ? null : Number(text)

/** Reads `--raw --numstat -z`: first all raw records, then the counts in the same order. */
const parse = (output: Buffer): ChangedPath[] => {
  const fields = records(output)
  const raws: Raw[] = []
  let at = 0
  const next = (): Buffer => fields[at++] ?? Buffer.alloc(0)
  while (fields[at]?.[0] === 0x3a) {
    const [oldMode = '', newMode = '', , , letter = ''] = next().toString('latin1').slice(1).split(' ')
    const status = statuses[letter.slice(0, 1)] ?? 'modified'
    const first = showPath(next())
    const [path, old_path] = status === 'renamed' ? [showPath(next()), first] : [first, null]
    raws.push({ path, old_path, status, old_mode: oldMode, new_mode: newMode })
  }
  return raws.map((raw) => {
    const [added, deleted] = next().toString('latin1').split('\t', 2)
    if (raw.status === 'renamed') at += 2
    const insertions = lines(added)
    return { ...raw, binary: insertions === null, insertions, deletions: lines(deleted) }
  })
}

const total = (paths: ChangedPath[]): ChangeStat => ({
  files: paths.reduce((sum, { status }) => sum + (status === 'renamed' ? 2 : 1), 0),
  insertions: paths.reduce((sum, { insertions }) => sum + (insertions ?? 0), 0),
  deletions: paths.reduce((sum, { deletions }) => sum + (deletions ?? 0), 0),
})

/** Options of every difference that is shown: by content alone, whatever attributes or config a tree brings along. */
export const plainDiff = ['-r', '-M', '--no-ext-diff', '--no-textconv', '--no-color', '--full-index']

/** What a commit changes from the base, path by path. */
export const changedPaths = async (run: Run, commit: string): Promise<Changes> => {
  const { stdout } = await git(
    ['diff-tree', ...plainDiff, '-z', '--raw', '--numstat', run.base, commit],
    onObjects(run),
  )
  const paths = parse(stdout)
  return { paths, stat: total(paths) }
}

/** Marks that show a line in another order than programs read it: embeddings, overrides and isolates. */
const reordering = [...'\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069'].join('|')

/** Paths of which an added or removed line holds a mark that reorders what is shown. */
export const reorderedPaths = async (run: Run, commit: string): Promise<string[]> => {
  const options = ['-r', '--no-renames', '--no-ext-diff', '--no-textconv', '-z', '--name-only']
  const { stdout } = await git(['diff-tree', ...options, `-G${reordering}`, run.base, commit], onObjects(run))
  return records(stdout).map(showPath)
}
