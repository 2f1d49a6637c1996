import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** What a bare repository is made of; all of it is written directly, which costs no process. */
export type Skeleton = {
  /** The branch, or the full ref, that HEAD names. */
  head: string
  /** Length of its object names in hex: 40 (SHA-1) or 64 (SHA-256). */
  nameLength: number
  /** Object folders to borrow from. */
  alternates?: string[]
  /** A `packed-refs` file's text. */
  packedRefs?: string
  /** A `shallow` file's content, when history is cut. */
  shallow?: Buffer | null
  /** False for the git directory of a folder of files. */
  bare?: boolean
}

/** The config file of a repository of ours. */
export const repositoryConfig = (skeleton: Pick<Skeleton, 'nameLength' | 'bare'>): string =>
  [
    '[core]',
    `\trepositoryFormatVersion = ${skeleton.nameLength === 64 ? 1 : 0}`,
    `\tbare = ${skeleton.bare ?? true}`,
    '\tfileMode = true',
    ...(skeleton.nameLength === 64 ? ['[extensions]', '\tobjectFormat = sha256'] : []),
    '[user]',
    '\tname = Gatehouse',
    '\temail = gatehouse@localhost',
    '[gc]',
    '\tauto = 0',
    '[maintenance]',
    '\tauto = false',
    '',
  ].join('\n')

/** Writes a repository into `directory`, which need not be there. */
export const writeSkeleton = async (directory: string, skeleton: Skeleton): Promise<void> => {
  await mkdir(join(directory, 'refs', 'heads'), { recursive: true })
  await mkdir(join(directory, 'objects', 'info'), { recursive: true })
  await mkdir(join(directory, 'objects', 'pack'), { recursive: true })
  await Promise.all([
    writeFile(join(directory, 'HEAD'), `ref: ${skeleton.head}\n`),
    writeFile(join(directory, 'config'), repositoryConfig(skeleton)),
    skeleton.alternates === undefined
      ? undefined
      : writeFile(join(directory, 'objects', 'info', 'alternates'), `${skeleton.alternates.join('\n')}\n`),
    skeleton.packedRefs
      ? writeFile(join(directory, 'packed-refs'), skeleton.packedRefs, 'latin1')
      : undefined,
    skeleton.shallow ? writeFile(join(directory, 'shallow'), skeleton.shallow) : undefined,
  ])
}

/** The `shallow` file of a repository, null when its history is whole. */
export const readShallow = (directory: string): Promise<Buffer | null> =>
  readFile(join(directory, 'shallow')).catch(() => null)
