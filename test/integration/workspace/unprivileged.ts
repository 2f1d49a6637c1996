import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { removeTree } from '../../../lib/workspace/remove-tree.ts'
import { openWorkspace } from '../../../lib/workspace/workspace.ts'

const { BECOME } = process.env
if (BECOME !== undefined) {
  process.setgroups?.([])
  process.setgid?.(Number(BECOME))
  process.setuid?.(Number(BECOME))
}

const [folder = '', mirror = '', base = ''] = process.argv.slice(2)
const workspace = await openWorkspace({ run: join(folder, 'run'), mirror, base })
writeFileSync(join(workspace.tree, 'secret'), 'x', { mode: 0o000 })
writeFileSync(join(workspace.tree, 'README.md'), 'y')
mkdirSync(join(workspace.tree, 'closed/inside'), { recursive: true })
writeFileSync(join(workspace.tree, 'closed/inside/file'), 'x')
chmodSync(join(workspace.tree, 'closed'), 0o000)
const captured = await workspace.capture()
chmodSync(join(workspace.tree, 'closed'), 0o500)
chmodSync(join(workspace.tree, 'closed/inside'), 0o500)
await removeTree(workspace.tree)
const { paths } = await workspace.changedPaths(
  await workspace.squash({ tree: captured.tree, intent: 'x', sessionId: 's', date: new Date(0) }),
)
console.log(
  JSON.stringify({
    unrecorded: captured.unrecorded,
    changed: paths.map(({ path }) => path),
    left: existsSync(workspace.tree),
  }),
)
