import { git, records } from './git.ts'
import { showPath } from './path-text.ts'

/** One file of a tree: its mode, the name of its blob and, of a blob, the size of that. */
export type TreeEntry = { mode: string; name: string; size: number; path: Buffer }

/** Where git reads. */
type From = { gitDir: string; signal: AbortSignal | undefined }

/** All files of a commit. */
export const listFiles = async (from: From, commit: string): Promise<TreeEntry[]> => {
  const { stdout } = await git(['ls-tree', '-r', '-z', '--long', '--full-tree', commit], from)
  return records(stdout).map((record) => {
    const tab = record.indexOf(9)
    const [mode = '', , name = '', size = '0'] = record.subarray(0, tab).toString('latin1').split(/ +/)
    return { mode, name, size: Number(size) || 0, path: record.subarray(tab + 1) }
  })
}

/** What blobs hold, by their names. */
export const readBlobs = async (from: From, names: Iterable<string>): Promise<Map<string, Buffer>> => {
  const wanted = [...new Set(names)]
  const found = new Map<string, Buffer>()
  if (wanted.length === 0) return found
  const { stdout } = await git(['cat-file', '--batch'], { ...from, input: `${wanted.join('\n')}\n` })
  for (let at = 0; at < stdout.length; ) {
    const line = stdout.indexOf(10, at)
    const [name = '', , size = '0'] = stdout.subarray(at, line).toString('latin1').split(' ')
    found.set(name, stdout.subarray(line + 1, line + 1 + Number(size)))
    at = line + 2 + Number(size)
  }
  return found
}

/** The files of one commit, by their printable paths. */
export type TreeFiles = {
  has: (path: string) => boolean
  paths: () => Iterable<string>
  /** The text of a file of at most `max` bytes; null where there is none of that size. */
  text: (path: string, max: number) => Promise<string | null>
  /** Where links point to, in printable form. */
  targets: (paths: Iterable<string>) => Promise<Map<string, string>>
}

export const treeFiles = async (from: From, commit: string): Promise<TreeFiles> => {
  const all = new Map((await listFiles(from, commit)).map((entry) => [showPath(entry.path), entry] as const))
  return {
    has: (path) => all.has(path),
    paths: () => all.keys(),
    text: async (path, max) => {
      const entry = all.get(path)
      if (!entry?.mode.startsWith('100') || entry.size > max) return null
      return (await readBlobs(from, [entry.name])).get(entry.name)?.toString('utf8') ?? null
    },
    targets: async (paths) => {
      const links = [...paths].flatMap((path) => {
        const entry = all.get(path)
        return entry?.mode === '120000' ? [{ path, name: entry.name }] : []
      })
      const held = await readBlobs(
        from,
        links.map(({ name }) => name),
      )
      return new Map(
        links.flatMap(({ path, name }) => {
          const target = held.get(name)
          return target ? [[path, showPath(target)] as const] : []
        }),
      )
    },
  }
}
