import { lstat, readdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isLookedUp, nestedNames, singleNames } from './names.ts'

const there = async (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  )

/** A folder that may be entered but not listed is asked for each name that has no pattern. */
const namesIn = async (folder: string): Promise<string[]> => {
  const names = await readdir(folder).catch(() => null)
  if (names !== null) return names.filter(isLookedUp)
  const asked = await Promise.all(singleNames.map((name) => there(join(folder, name))))
  return singleNames.filter((_, index) => asked[index])
}

/** The paths in one folder that tools find from below it. */
export const lookedUpIn = async (folder: string): Promise<string[]> => {
  const nested = await Promise.all(nestedNames.map((name) => there(join(folder, name))))
  const names = [...(await namesIn(folder)), ...nestedNames.filter((_, index) => nested[index])]
  return names.sort().map((name) => join(folder, name))
}

/** A folder and all those above it, nearest first. */
export const withAncestors = (folder: string): string[] => {
  const above = dirname(folder)
  return above === folder ? [folder] : [folder, ...withAncestors(above)]
}

/** All that tools which work below `folder`, an absolute path without links, find in it and in the folders above it. */
export const lookedUpFrom = async (folder: string): Promise<string[]> =>
  (await Promise.all(withAncestors(folder).map(lookedUpIn))).flat()
