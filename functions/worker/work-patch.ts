import { join } from 'node:path'
import { nameOfContent } from '../../lib/artifact-name.ts'
import { sha256Of } from '../../lib/kept-file.ts'
import type { Command } from '../../lib/session/protocol.ts'
import type { Workspace } from '../../lib/workspace/workspace.ts'
import { commandSuffix, outputFolder, type WorkerSession } from './session.ts'

/**
 * Uploads the patch of the work as it was saved, for a person to see while nothing could be judged. Returns the artifact's
 * name; null where there is no work.
 */
export const uploadWorkPatch = async (
  session: WorkerSession,
  command: Command,
  workspace: Workspace,
): Promise<string | null> => {
  const { checkpoint } = command.session
  if (checkpoint === null || checkpoint.tree === workspace.baseTree) return null
  const base = `work-${commandSuffix(command)}`
  const file = join(outputFolder(session), `${base}.patch`)
  await workspace.writePatch(checkpoint.commit, file)
  const name = nameOfContent(base, await sha256Of(file), 'patch')
  await session.client.upload([{ kind: 'artifact', name, file }])
  return name
}
