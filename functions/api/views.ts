import { z } from 'zod'
import { type CheckResult, checkResultSchema } from '../../lib/contract/schema.ts'
import { contractWarnings } from '../../lib/contract/validate.ts'
import { GatehouseError } from '../../lib/errors.ts'
import { needsYou } from '../../lib/session/gates.ts'
import type { SessionItem } from '../../lib/session/item.ts'
import { reviewBodySchema } from '../../lib/session/protocol.ts'
import type { Platform } from '../../lib/store/platform.ts'
import type { ListedSession } from '../../lib/store/session-pages.ts'
import type { ReviewView, SessionView } from './schemas.ts'

const resultsSchema = z.array(checkResultSchema)

/** Results with the heads and tails of their outputs, which the item itself doesn't hold. */
export const withOutput = async (
  platform: Platform,
  item: SessionItem,
  artifact: string | null,
  results: CheckResult[],
): Promise<CheckResult[]> => {
  if (artifact === null) return results
  return platform.artifacts.json(item, artifact, resultsSchema)
}

/** A session as a list shows it: without the outputs of its checks. */
export const sessionView = (item: ListedSession, queue: SessionView['queue'] = null): SessionView => {
  const { document, runtime } = item
  return {
    ...document,
    workspace_path: null,
    project: null,
    project_kind: null,
    existing_agent_id: null,
    builder_draft: null,
    built_agent: null,
    agent_build_progress: null,
    model: null,
    checkout_identity: null,
    inputs_snapshot: null,
    discussion_id: null,
    discussion_constraints: [],
    browser: false,
    distributed: false,
    workers: [],
    pool_workers: [],
    placements: [],
    integrated_subtasks: [],
    repaired_locally: false,
    authored_by: [],
    event_cursor: item.journal_head.sequence + 1,
    contract_warnings: document.contract ? contractWarnings(document.contract) : [],
    needs_you: needsYou(document),
    queue,
    cost_usd: document.usage.cost_usd,
    version: item.version,
    journal_head: item.journal_head,
    compute: { status: runtime.compute?.status ?? 'none', stopped_at: runtime.compute?.stopped_at ?? null },
  }
}

const isQueued = ({ document, runtime }: ListedSession): boolean =>
  document.step === 'Admit' && runtime.queued_at !== null

/** Where sessions of a team stand in its queue, by one reading of it; null for one that waits for no slot. */
export const queuesOf = async (
  platform: Platform,
  team: string,
  items: readonly ListedSession[],
): Promise<(item: ListedSession) => SessionView['queue']> => {
  if (!items.some(isQueued)) return () => null
  const place = await platform.admission.places(team)
  return (item) => (isQueued(item) ? place(item.runtime.queued_at ?? '', item.id) : null)
}

/** A session as a call for that one session shows it. */
export const fullSessionView = async (platform: Platform, item: SessionItem): Promise<SessionView> => {
  const { document } = item
  const [baseline, last, queue] = await Promise.all([
    withOutput(platform, item, document.baseline_artifact, document.baseline),
    withOutput(platform, item, document.last_results_artifact, document.last_check_results),
    isQueued(item) ? platform.admission.place(item.team, item.runtime.queued_at ?? '', item.id) : null,
  ])
  return { ...sessionView(item, queue), baseline, last_check_results: last }
}

/** The review that an approval would bind. Throws `not_found` while there is none. */
export const reviewView = async (platform: Platform, item: SessionItem): Promise<ReviewView> => {
  const { document } = item
  const { review_identity: identity, review_stat: stat, review_artifact: artifact } = document
  if (!identity || !stat || !artifact)
    throw new GatehouseError('not_found', `session ${item.id} has no review yet`)
  const body = await platform.artifacts.json(item, artifact, reviewBodySchema)
  const [checks, baseline] = await Promise.all([
    withOutput(platform, item, document.last_results_artifact, document.last_check_results),
    withOutput(platform, item, document.baseline_artifact, document.baseline),
  ])
  return {
    ...identity,
    session_id: item.id,
    checks,
    baseline,
    stat,
    authored_by: [],
    finding: document.no_change_finding,
    accepted_red: document.accepted_red,
    source_warnings: document.source_warnings,
    ...body,
  }
}
