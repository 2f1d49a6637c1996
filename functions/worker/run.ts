import { limits } from '../../lib/limits.ts'
import type { Command, Result } from '../../lib/session/protocol.ts'
import { isWorkerStep } from '../../lib/session/states.ts'
import { firstOf } from '../../lib/text/shorten.ts'
import { visible } from '../../lib/text/visible.ts'
import { code } from './commands/code.ts'
import { baseline, draft, preflight, prepare } from './commands/define.ts'
import { deliver, verify } from './commands/ship.ts'
import { validate } from './commands/validate.ts'
import { handOver } from './hand-over.ts'
import { keepWork } from './keep.ts'
import type { WorkerSession } from './session.ts'
import { Superseded } from './transport.ts'

const commands = {
  Preflight: preflight,
  Prepare: prepare,
  Draft: draft,
  Baseline: baseline,
  Code: code,
  Validate: validate,
  Verify: verify,
  Deliver: deliver,
} as const

const runCommand = async (session: WorkerSession, command: Command): Promise<Result> => {
  if (!isWorkerStep(command.step)) return { outcome: 'fault', detail: `a worker has no step ${command.step}` }
  try {
    return await commands[command.step](session, command)
  } catch (error) {
    if (error instanceof Superseded || session.signal.aborted) throw error
    const detail = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
    return { outcome: 'fault', detail: firstOf(visible(detail), limits.reason) }
  }
}

/** Whether the worker is to leave with this command's end. */
const carryOut = async (session: WorkerSession, command: Command): Promise<boolean> => {
  try {
    const result = await runCommand(session, command)
    const { leave } = await session.client.complete(command.id, result, await session.reporter.drain())
    if (leave && result.outcome === 'Code')
      await handOver(session.folder, {
        ...{ checkpoint: result.checkpoint.id, set_up: session.setUp },
        home: session.place?.homeStamp() ?? '',
      })
    return leave
  } catch (error) {
    if (session.signal.aborted) await keepWork(session, command)
    throw error
  }
}

/** Does one command after another until it is told to stop or superseded. */
export const runWorker = async (session: WorkerSession): Promise<void> => {
  for (;;) {
    const answer = await session.client.command()
    if (answer.kind === 'stop') return
    if (answer.kind === 'wait') continue
    if (await carryOut(session, answer.command)) return
  }
}
