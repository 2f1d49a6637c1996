import { hash } from 'node:crypto'
import type { z } from 'zod'
import { nameOfContent } from '../../lib/artifact-name.ts'
import type { CheckResult } from '../../lib/contract/schema.ts'
import { GatehouseError } from '../../lib/errors.ts'
import { complete } from '../../lib/session/completions.ts'
import type { Runtime, SessionItem } from '../../lib/session/item.ts'
import {
  type Command,
  commandSchema,
  type completeRequestSchema,
  type Result,
} from '../../lib/session/protocol.ts'
import type { Step } from '../../lib/session/states.ts'
import { receipted, requireLease, requireSpeaker } from '../../lib/session/worker.ts'
import { transition } from '../../lib/store/effects.ts'
import { objectKey } from '../../lib/store/keys.ts'
import type { Platform } from '../../lib/store/platform.ts'
import { withOutput } from './views.ts'

/** The review that a command's result would make; from the command, so that a repeat makes the same one. */
const reviewIdOf = (commandId: string) => commandId.replace(/^cmd_/, 'rev_')
/** Named for the worker too: one that was superseded can't write over what its successor found. */
const resultsArtifactOf = (commandId: string, workerId: string, text: string) =>
  nameOfContent(`results-${commandId}-${workerId}`, hash('sha256', text), 'json')

/** A command with all that its worker needs to know. */
export const describeCommand = async (
  platform: Platform,
  item: SessionItem,
  command: NonNullable<Runtime['command']>,
): Promise<Command> => {
  const { document } = item
  const repairs = command.step === 'Code' && document.iterations - document.round_started_at > 1
  const bundle = document.checkpoint?.bundle ?? null
  return {
    id: command.id,
    step: command.step,
    session: commandSchema.shape.session.strip().parse(document),
    allow_local_repositories: platform.policy.allowLocalRepositories,
    failing: repairs
      ? (
          await withOutput(platform, item, document.last_results_artifact, document.last_check_results)
        ).filter(({ passed, verdict }) => !passed && verdict !== 'captured')
      : [],
    captures: document.captures,
    budget_left_usd:
      document.budget_usd === null ? null : Math.max(0, document.budget_usd - (document.usage.cost_usd ?? 0)),
    bundle:
      bundle === null
        ? null
        : { url: await platform.blobs.downloadUrl(objectKey.bundle(item.team, item.id, bundle)) },
    review_id: reviewIdOf(command.id),
  }
}

const resultsOf = (result: Result): CheckResult[] | null => ('results' in result ? result.results : null)

const endsStep = ({ outcome }: Result, step: Step): boolean =>
  outcome === 'failed' ||
  outcome === 'fault' ||
  outcome === step ||
  (outcome === 'setup_failed' && (step === 'Validate' || step === 'Verify'))

/**
 * Ends the command in hand with its result. The outputs go to the bucket first, under a name that the command gives;
 * then one conditional write decides. A repeat of the last completion is answered as the first was.
 */
export const completeCommand = async (
  platform: Platform,
  id: { team: string; id: string },
  workerId: string,
  request: z.infer<typeof completeRequestSchema>,
): Promise<SessionItem> => {
  const { command_id: commandId, result } = request
  const text = JSON.stringify(resultsOf(result))
  const artifact = resultsArtifactOf(commandId, workerId, text)
  if (resultsOf(result)) await platform.blobs.put(objectKey.artifact(id.team, id.id, artifact), text)
  return transition(platform, id, (item) => {
    if (item.runtime.last_command_id === commandId) return null
    requireLease(item, { worker_id: workerId, epoch: request.epoch })
    const { command } = item.runtime
    if (!command || command.id !== commandId || !endsStep(result, command.step)) {
      throw new GatehouseError('superseded', `command ${commandId} is not in hand`)
    }
    requireSpeaker(item, request.facts)
    const change = complete(item, result, {
      actor: { kind: 'worker', id: workerId },
      events: request.facts,
      artifact,
      reviewId: reviewIdOf(commandId),
      now: platform.clock(),
    })
    return { ...change, ...receipted(item, request.receipt) }
  })
}
