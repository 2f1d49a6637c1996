import { link, lstat, mkdir, readdir, realpath, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { locate } from './local.ts'
import type { Repository } from './repository-address.ts'

/** Files that are linked at a time. */
const together = 64

const code = (error: unknown): unknown => (error instanceof Error && 'code' in error ? error.code : undefined)

const exists = async (path: string): Promise<boolean> => (await lstat(path).catch(() => null)) !== null

/** A history that is cut, borrowed or fetched on demand is not whole in these files. */
const isWhole = async (gitDir: string, objects: string): Promise<boolean> => {
  const parts = [join(gitDir, 'shallow'), join(objects, 'info', 'alternates')]
  const found = await Promise.all(parts.map(exists))
  const packs = await readdir(join(objects, 'pack')).catch((): string[] => [])
  return !found.includes(true) && !packs.some((name) => name.endsWith('.promisor'))
}

/** Loose objects before packs, so that what is packed meanwhile is met at least once; an index after its pack. */
const objectFiles = async (objects: string): Promise<string[]> => {
  const folders = (await readdir(objects)).filter((name) => /^[0-9a-f]{2}$/.test(name))
  const loose = await Promise.all(
    folders.map(async (folder) => {
      const names = await readdir(join(objects, folder)).catch((): string[] => [])
      return names.filter((name) => /^[0-9a-f]{38,62}$/.test(name)).map((name) => join(folder, name))
    }),
  )
  const packs = (await readdir(join(objects, 'pack'))).filter((name) =>
    /^pack-[0-9a-f]{40,64}\.(pack|rev|idx)$/.test(name),
  )
  const order = ['.pack', '.rev', '.idx']
  const rank = (name: string) => order.findIndex((end) => name.endsWith(end))
  return [
    ...loose.flat(),
    ...packs.toSorted((one, other) => rank(one) - rank(other)).map((name) => join('pack', name)),
  ]
}

/**
 * A second name for one file. Only what is this user's own: nobody else can then change what we hold. Throws EXDEV on
 * another file system.
 */
const linkOwn = async (from: string, to: string, user: number): Promise<void> => {
  try {
    const before = await lstat(from)
    if (!before.isFile() || before.uid !== user) return
    await link(from, to)
    const made = await lstat(to)
    if (!made.isFile() || made.uid !== user) await rm(to)
  } catch (error) {
    // Packed away meanwhile, or there from a call that was interrupted.
    if (code(error) !== 'ENOENT' && code(error) !== 'EEXIST') throw error
  }
}

const linkAll = async (from: string, to: string, user: number): Promise<void> => {
  const files = await objectFiles(from)
  await Promise.all(
    [...new Set(files.map((file) => join(to, file, '..')))].map((it) => mkdir(it, { recursive: true })),
  )
  for (let at = 0; at < files.length; at += together)
    await Promise.all(
      files.slice(at, at + together).map((file) => linkOwn(join(from, file), join(to, file), user)),
    )
}

/**
 * Gives an empty mirror the objects of a path repository as hard links, so that a fetch finds them there and copies
 * nothing. Git never changes what a finished file of objects holds (it may renew its time), at either end, and removes
 * one name without the other. An object that no ref reaches comes along. Does nothing, or a part, where that can't be: a fetch then copies what is missing.
 */
export const linkObjects = async (
  repository: Repository,
  objects: string,
  signal: AbortSignal | undefined,
): Promise<void> => {
  const user = process.geteuid?.()
  const path = repository.kind === 'local' ? await realpath(repository.url).catch(() => null) : null
  if (path === null || user === undefined) return
  const found = await locate(path, signal)
  if (found === null || !(await isWhole(found.gitDir, found.objects))) return
  await linkAll(found.objects, objects, user).catch(() => {})
}
