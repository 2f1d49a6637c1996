import type { Command } from '../../lib/session/protocol.ts'
import { bundleRecord } from './kept-file.ts'
import type { WorkerSession } from './session.ts'
import { Superseded } from './transport.ts'

/**
 * Saves what an engine had done when its worker was told to stop, for a session that keeps it. The address for the
 * bundle comes first: where the API gives none, nothing is to be kept. Other commands leave nothing behind that the last
 * checkpoint lacks. Throws nothing: that checkpoint stands, whatever goes wrong here.
 */
export const keepWork = async (session: WorkerSession, command: Command): Promise<void> => {
  const { workspace, leaving: signal } = session
  const { keep_workspace_on_cancel: keeps, checkpoint } = command.session
  if (!keeps || workspace === null || command.step !== 'Code') return
  const id = `${command.id}-kept`
  const name = `${id}.bundle`
  try {
    const api = session.client.leaving(signal)
    const address = await api.addressOf({ kind: 'bundle', name })
    const { tree, commit, bundle } = await workspace.save(signal)
    if (tree === (checkpoint?.tree ?? workspace.baseTree)) return
    if (bundle !== null) await api.put(address, bundle)
    await api.retain({ id, commit, tree, ...(await bundleRecord(name, bundle)) })
  } catch (error) {
    if (!(error instanceof Superseded)) console.error('the work could not be kept:', error)
  }
}
