import { capture } from './capture.ts'
import { git } from './git.ts'
import { readPath } from './path-text.ts'
import { removeTree } from './remove-tree.ts'
import { onTree, type Run } from './run-folder.ts'

/**
 * Makes the working files equal a tree again: changed, added and deleted paths alike, ignored ones left alone. Embedded
 * repositories that were not there at the last capture (`embedded`) go too.
 */
export const reset = async (run: Run, tree: string, embedded: string[]): Promise<void> => {
  const now = await capture(run, null)
  const kept = new Set(embedded)
  for (const path of now.embedded)
    if (!kept.has(path)) await removeTree(Buffer.concat([Buffer.from(`${run.tree}/`), readPath(path)]))
  await git(['read-tree', '-u', '--reset', tree], onTree(run))
}
