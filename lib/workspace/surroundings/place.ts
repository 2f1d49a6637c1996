import { lstat, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { removeTree } from '../remove-tree.ts'
import { stampOf } from './home-stamp.ts'
import { type LaunchFolder, mendTrees, removeFrom } from './launch.ts'
import { type Found, lookAround } from './look-around.ts'
import { makeReadOnly, whileWritable } from './read-only.ts'

/** Where one tree stands, in a folder that holds it and the home of the commands that judge it, and nothing else. */
export type Place = {
  tree: string
  /** HOME of the setup and the checks that run on this tree; an engine is never told of it. */
  home: string
  /** TMPDIR of the same commands. */
  temporary: string
  /** Looks at every folder above the tree, and clears those that are ours. To be called before each command. */
  look(): Promise<Found>
  /** To be called after each command: what it left in its home is what the next one finds there. */
  settle(): Promise<void>
  /** Whether home and temporary files are as the last command left them. */
  isHomeIntact(): Promise<boolean>
  /** The state of home and temporary files as the last command left them. */
  homeStamp(): string
  /** Gives the tree a new home and no temporary files; what the setup left there is gone. */
  renewHome(): Promise<void>
  close(): Promise<void>
}

/** The places of one launch; each has a name, and there is one of a name at a time. */
export type Places = {
  /** Makes the place anew; `fill` makes the folder `tree`, and may leave nothing else beside it. */
  open<Value>(name: string, fill: (tree: string) => Promise<Value>): Promise<{ place: Place; value: Value }>
  /** Goes on with a place that an earlier worker made, its tree as it is; null where there is no such folder. */
  adopt(name: string, homeStamp: string): Promise<Place | null>
}

/** `furnish` puts into an empty home what each home of a tree begins with. */
export const createPlaces = (launch: LaunchFolder, furnish: (home: string) => Promise<void>): Places => {
  const open = new Set<string>()
  const close = async (name: string): Promise<void> => {
    await removeTree(join(launch.temporary, name))
    await removeFrom(launch.trees, name)
    open.delete(name)
  }
  const placeOf = (name: string, stamped: string | null) => {
    const folder = join(launch.trees, name)
    const [tree, home] = [join(folder, 'tree'), join(folder, 'home')]
    const temporary = join(launch.temporary, name)
    const state = { stamp: stamped }
    const stamp = async () => `${await stampOf(home)} ${await stampOf(temporary)}`
    const fillHome = async () => {
      await mkdir(home, { mode: 0o700 })
      await mkdir(temporary, { recursive: true, mode: 0o700 })
      await furnish(home)
    }
    const settle = async () => {
      state.stamp = await stamp()
    }
    const isHomeIntact = async () => (await stamp()) === state.stamp
    const place: Place = {
      ...{ tree, home, temporary, settle, isHomeIntact },
      homeStamp: () => state.stamp ?? '',
      look: async () => {
        const found = await lookAround(launch, open, { folder, tree })
        if (await isHomeIntact()) return found
        return { ...found, foreign: [...found.foreign, home] }
      },
      renewHome: async () => {
        await removeTree(temporary)
        await removeFrom(folder, 'home')
        await whileWritable(folder, fillHome)
        await settle()
      },
      close: () => close(name),
    }
    return { place, folder, fillHome }
  }
  return {
    open: async (name, fill) => {
      await mendTrees(launch)
      await close(name)
      const { place, folder, fillHome } = placeOf(name, null)
      await whileWritable(launch.trees, () => mkdir(folder, { mode: 0o700 }))
      open.add(name)
      await fillHome()
      const value = await fill(place.tree)
      await makeReadOnly(folder)
      await place.settle()
      return { place, value }
    },
    adopt: async (name, homeStamp) => {
      const { place, folder } = placeOf(name, homeStamp)
      for (const path of [folder, place.tree]) {
        const found = await lstat(path).catch(() => null)
        if (!found?.isDirectory()) return null
      }
      open.add(name)
      await makeReadOnly(folder)
      return place
    },
  }
}
