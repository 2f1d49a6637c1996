import { newId } from '../../lib/ids.ts'
import { fromLines } from '../../lib/journal/entry.ts'
import { type RecordFact, recordFactSchema } from '../../lib/journal/facts.ts'
import { creation } from '../../lib/session/creation.ts'
import type { SessionItem } from '../../lib/session/item.ts'
import { startSessionSchema } from '../../lib/session/start.ts'
import { carryOut } from '../../lib/store/effects.ts'
import { aContract, ada } from '../support/sessions.ts'
import { someOptions } from './moves.ts'
import { comeToRest } from './rest.ts'
import { type Services, team } from './services.ts'
import { createWorld, type World } from './world.ts'

/** Steps at which a walk can begin. */
export const starts = ['Admit', 'Confirm', 'Code', 'Validate', 'Review', 'Deliver'] as const
export type Start = (typeof starts)[number]

/** The records that lead a session to each start, of one that went the straight road. */
export type Roads = ReadonlyMap<string, readonly RecordFact[]>

const request = { repo: 'https://example.com/repo', intent: 'Make it work', engine_command: 'true' }

const recordsOf = (item: SessionItem, after: number): RecordFact[] =>
  fromLines(
    item.outbox
      .filter(({ sequence }) => sequence > after)
      .map(({ line }) => line)
      .join('\n'),
  )
    .filter(({ kind }) => kind === 'record')
    .map(({ type, data }) => recordFactSchema.parse({ type, data }))

/** Walks the straight road once and keeps what was recorded on the way to each start. */
export const walkRoads = async (services: Services): Promise<Roads> => {
  const roads = new Map<string, readonly RecordFact[]>()
  const records: RecordFact[] = []
  let last = -1
  const world = createWorld(services, (item) => {
    records.push(...recordsOf(item, last))
    last = item.journal_head.sequence
    const { step } = item.document
    if (!roads.has(step)) roads.set(step, records.slice(0))
  })
  await world.ask('ada', '/v1/sessions', { ...request, contract: aContract() })
  await comeToRest(world, 'yes')
  await services.clear()
  if (world.reference.violations.length > 0) throw world.reference.violations[0]
  return roads
}

const order = ['define', 'plan', 'code', 'validate', 'ship']
const stageOf: Record<Start, number> = { Admit: 0, Confirm: 0, Code: 2, Validate: 3, Review: 4, Deliver: 4 }

/** Results of the road's own session under the one name that the placed one has a file for. */
const withOwnFile = (fact: RecordFact): RecordFact => {
  if (fact.type === 'contract_baseline') return { ...fact, data: { ...fact.data, artifact: 'results' } }
  if (fact.type === 'contract_evaluated') return { ...fact, data: { ...fact.data, artifact: 'results' } }
  return fact
}

/**
 * Puts a session where a walk begins, by one write: its own creation and the records of the straight road. The machine
 * finds out by itself where it is.
 */
export const placeSession = async (world: World, roads: Roads, from: Start, dice: number): Promise<void> => {
  const id = newId('ses')
  const options = { ...someOptions(dice), ...(from === 'Admit' ? {} : { contract: aContract() }) }
  const isBehind = options.until !== null && order.indexOf(options.until) < stageOf[from]
  const start = startSessionSchema.parse({ ...request, ...options, ...(isBehind ? { until: null } : {}) })
  const change = creation({ id, team, repo: request.repo }, start, ada)
  const road = (roads.get(from) ?? []).filter(({ type }) => type !== 'session_created').map(withOwnFile)
  const { item } = await world.platform.sessions.create(
    { team, id },
    { ...change, facts: from === 'Admit' ? change.facts : [...change.facts, ...road] },
  )
  if (item.document.checkpoint?.bundle) await world.uploads.saveBundle(id, item.document.checkpoint.bundle)
  if (item.document.baseline_artifact) await world.uploads.saveResults(id, item.document.baseline)
  if (item.document.review_identity) await world.uploads.saveReview(id)
  await carryOut(world.platform, item)
}
