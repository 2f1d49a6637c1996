import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { stampOf } from './home-stamp.ts'
import { type LaunchFolder, mendTrees, removeFrom } from './launch.ts'
import { type Found, lookAround } from './look-around.ts'
import { makeReadOnly, whileWritable } from './read-only.ts'

/** Where one tree stands, in a folder that holds it and the home of the commands that judge it, and nothing else. */
export type Place = {
  tree: string
  /** HOME of the setup and the checks that run on this tree; an engine is never told of it. */
  home: string
  /** Looks at every folder above the tree, and clears those that are ours. To be called before each command. */
  look(): Promise<Found>
  /** To be called after each command: what it left in the home is what the next one finds there. */
  settle(): Promise<void>
  /** Whether the home is as the last command left it. */
  isHomeIntact(): Promise<boolean>
  /** Gives the tree an empty home; what the setup left in the old one is gone. */
  renewHome(): Promise<void>
  close(): Promise<void>
}

/** The places of one launch; each has a name, and there is one of a name at a time. */
export type Places = {
  /** Makes the place anew; `fill` makes the folder `tree`, and may leave nothing else beside it. */
  open<Value>(name: string, fill: (tree: string) => Promise<Value>): Promise<{ place: Place; value: Value }>
}

/** `furnish` puts into an empty home what each home of a tree begins with. */
export const createPlaces = (launch: LaunchFolder, furnish: (home: string) => Promise<void>): Places => {
  const open = new Set<string>()
  const close = async (name: string): Promise<void> => {
    await removeFrom(launch.trees, name)
    open.delete(name)
  }
  return {
    open: async (name, fill) => {
      await mendTrees(launch)
      await close(name)
      const folder = join(launch.trees, name)
      const [tree, home] = [join(folder, 'tree'), join(folder, 'home')]
      await whileWritable(launch.trees, () => mkdir(folder, { mode: 0o700 }))
      open.add(name)
      await mkdir(home, { mode: 0o700 })
      await furnish(home)
      const value = await fill(tree)
      await makeReadOnly(folder)
      const state = { stamp: await stampOf(home) }
      const settle = async () => {
        state.stamp = await stampOf(home)
      }
      const isHomeIntact = async () => (await stampOf(home).catch(() => null)) === state.stamp
      const place: Place = {
        ...{ tree, home, settle, isHomeIntact },
        look: async () => {
          const found = await lookAround(launch, open, { folder, tree })
          if (await isHomeIntact()) return found
          return { ...found, foreign: [...found.foreign, home] }
        },
        renewHome: async () => {
          await removeFrom(folder, 'home')
          await whileWritable(folder, () => mkdir(home, { mode: 0o700 }))
          await furnish(home)
          await settle()
        },
        close: () => close(name),
      }
      return { place, value }
    },
  }
}
