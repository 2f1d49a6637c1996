import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { newId } from '../../../lib/ids.ts'
import { checkEnvironment } from '../../../lib/process/check-home.ts'
import { childEnvironment } from '../../../lib/process/environment.ts'
import { makeLaunch, removeLaunch } from '../../../lib/workspace/surroundings/launch.ts'
import { createPlaces } from '../../../lib/workspace/surroundings/place.ts'
import { chooseRunsRoot, runsCandidates } from '../../../lib/workspace/surroundings/root.ts'
import { temporaryFolder, writeFiles } from '../../repositories.ts'
import { type LookUp, lookUps } from './lookups.ts'

// Each look-up starts a real tool twice, on machines that may be busy with others.
vi.setConfig({ testTimeout: 60_000 })

const uid = process.getuid?.() ?? 0
const projectRoot = join(import.meta.dirname, '..', '..', '..')

/** A tree where the product puts one, for a user whose data folder is at its default place. */
const aPlace = async (files: LookUp['tree'] = {}) => {
  const user = temporaryFolder()
  const home = join(user, '.local', 'state', 'gatehouse')
  const { runs, refused } = await chooseRunsRoot(runsCandidates(home, uid), uid)
  expect(refused).toEqual([])
  const id = newId('ses')
  const launch = await makeLaunch(runs, id, newId('wrk'))
  onTestFinished(() => removeLaunch(runs, id))
  const { place } = await createPlaces(launch, async () => {}).open('worktree', async (tree) => {
    mkdirSync(tree)
    writeFiles(tree, files)
  })
  const ours = [dirname(place.tree), launch.trees, launch.folder, runs]
  const others = [home, join(user, '.local', 'state'), join(user, '.local'), user]
  const run = async (command: string): Promise<boolean> => {
    // The programs of the user whose tests these are, and none of ours.
    const env = childEnvironment(process.env, {}, projectRoot)
    const { stdout } = spawnSync('sh', ['-c', command], {
      cwd: place.tree,
      env: checkEnvironment(env, {
        ...{ home: place.home, temporary: place.temporary, userHome: env.HOME ?? '/' },
      }),
      encoding: 'utf8',
    })
    await place.settle()
    return stdout.includes('found')
  }
  return { place, ours, others, run }
}

const isHere = (program: string): boolean => {
  try {
    execFileSync('sh', ['-c', `command -v ${program}`], {
      env: childEnvironment(process.env, {}, projectRoot),
      stdio: 'ignore',
    })
    return true
  } catch {
    return false
  }
}

/** Puts files in a folder as an engine of the same user can, whatever its rights are. */
const plant = (folder: string, files: LookUp['planted']): void => {
  chmodSync(folder, 0o700)
  writeFiles(folder, files)
}

for (const { tool, needs, tree, planted, command } of lookUps) {
  test.skipIf(!isHere(needs))(
    `${tool}: nothing above the tree is found, in none of its folders`,
    async () => {
      const { place, ours, others, run } = await aPlace(tree)
      expect(await run(command)).toBe(false)
      const [nearest] = ours
      if (nearest === undefined) throw new Error('a tree has folders above it')
      plant(nearest, planted)
      // Without that the rest would prove nothing: the tool does look there.
      expect(await run(command)).toBe(true)
      for (const folder of ours) plant(folder, planted)
      const { removed, foreign } = await place.look()
      expect(foreign).toEqual([])
      for (const folder of ours)
        for (const name of Object.keys(planted)) {
          expect(existsSync(join(folder, name))).toBe(false)
          expect(removed.some((path) => join(folder, name).startsWith(path))).toBe(true)
        }
      expect(await run(command)).toBe(false)
      for (const folder of others) {
        plant(folder, planted)
        expect((await place.look()).foreign.map(dirname).some((found) => found.startsWith(folder))).toBe(true)
        for (const name of Object.keys(planted))
          rmSync(join(folder, name.split('/')[0] ?? ''), { recursive: true, force: true })
      }
      expect(await place.look()).toEqual({ removed: [], foreign: [] })
    },
  )
}
