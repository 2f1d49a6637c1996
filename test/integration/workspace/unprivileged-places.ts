import { chmodSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { newId } from '../../../lib/ids.ts'
import { makeLaunch, removeLaunch } from '../../../lib/workspace/surroundings/launch.ts'
import { createPlaces } from '../../../lib/workspace/surroundings/place.ts'
import { chooseRunsRoot } from '../../../lib/workspace/surroundings/root.ts'

const { BECOME } = process.env
const become = (id: number): void => {
  if (BECOME !== undefined) process.seteuid?.(id)
}
const user = BECOME === undefined ? (process.getuid?.() ?? 0) : Number(BECOME)
become(user)

const attempt = (work: () => void): string => {
  try {
    work()
    return 'done'
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : String(error)
  }
}

const [folder = ''] = process.argv.slice(2)
const { runs } = await chooseRunsRoot([join(folder, 'runs')], user)
const id = newId('ses')
const launch = await makeLaunch(runs, id, newId('wrk'))
const { place } = await createPlaces(launch, async () => {}).open('worktree', async (tree) => mkdirSync(tree))
const above = [dirname(place.tree), launch.trees, launch.folder, runs]
const attempts = above.map((path) => attempt(() => mkdirSync(join(path, 'node_modules'))))
// As its owner it can give itself the right, and make what it planted hard to remove.
for (const path of above) {
  chmodSync(path, 0o700)
  mkdirSync(join(path, 'node_modules', 'x'), { recursive: true })
  chmodSync(join(path, 'node_modules'), 0o500)
}
const { removed } = await place.look()
const rights = above.map((path) => statSync(path).mode & 0o777)
become(0)
if (BECOME !== undefined) {
  mkdirSync(join(runs, 'of-root'))
  writeFileSync(join(runs, 'of-root', 'file'), '')
}
become(user)
const { foreign } = await place.look()
await removeLaunch(runs, id)
console.log(
  JSON.stringify({
    attempts,
    removed: removed.length,
    rights,
    foreign,
    left: attempt(() => statSync(launch.folder)),
  }),
)
