import { computeStopped } from '../../functions/compute/stopped.ts'
import { fromLines } from '../../lib/journal/entry.ts'
import type { SessionItem } from '../../lib/session/item.ts'
import { requirePrefixes } from '../support/prefixes.ts'
import { type Decision, fittingDecision } from './decisions.ts'
import { hasEnded } from './reference.ts'
import { team } from './services.ts'
import { calm, type World } from './world.ts'

/** How a run is brought to its end: by a person who says yes, by one who says no, or by a cancel. */
export type Ending = 'yes' | 'no' | 'cancel'

/** Rounds in which a session has to come to its end or to rest once nothing goes wrong any more. */
const mostRounds = 150

const yes = (item: SessionItem): Decision | null => {
  const { gate } = item.document
  if (gate?.kind === 'preflight' || gate?.kind === 'validate')
    return { path: 'gate', body: { gate_id: gate.id, action: 'advance' } }
  return fittingDecision(item, 0)
}

const no = (item: SessionItem): Decision | null => {
  const { gate, review_identity: review } = item.document
  if (gate?.kind === 'approval')
    return { path: 'review/reject', body: { review_id: review?.review_id, reason: 'no' } }
  if (gate?.kind === 'preflight' || gate?.kind === 'validate')
    return { path: 'gate', body: { gate_id: gate.id, action: 'abort' } }
  return gate ? { path: 'cancel', body: {} } : fittingDecision(item, 0)
}

const cancelled: Decision = { path: 'cancel', body: {} }
const endings = { yes, no, cancel: () => cancelled }

const isOver = ({ document, runtime, outbox }: SessionItem) =>
  ((hasEnded(document) && runtime.settled && runtime.sealed !== null) || runtime.resting) &&
  outbox.length === 0 &&
  runtime.answers.length === 0 &&
  !runtime.start_pending

/** Answers what is asked, and sets going what rests; whether anything was there to be answered. */
const answer = async (world: World, ending: Ending): Promise<boolean> => {
  let answered = false
  for (const [at, { id }] of world.reference.items().entries()) {
    const item = world.reference.item(id)
    if (!item || hasEnded(item.document)) continue
    // The road is the same for all: only the first session is let go all the way.
    const decision = at > 0 ? cancelled : endings[ending](item)
    if (!decision || (decision.path === 'resume' && (ending === 'no' || !item.runtime.resting))) continue
    answered = true
    const path = `/v1/sessions/${id}/`
    const told = await world.ask('ada', `${path}${decision.path}`, decision.body)
    if (told?.status === 200) continue
    // The one decision that may be refused although its gate is open: the work can't be tried again.
    const given = decision.path === 'gate' ? await world.ask('ada', `${path}cancel`, {}) : told
    if (given?.status !== 200)
      world.reference.violate(`${decision.path} of ${id} answered ${told?.status}: ${told?.body.detail}`)
  }
  return answered
}

const round = async (world: World, ending: Ending): Promise<boolean> => {
  let moved = false
  for (const worker of world.fleet.ended.splice(0)) {
    const stopped = { team, id: worker.session, worker_id: worker.id, reason: 'exit 0' }
    await computeStopped(world.platform, stopped)
  }
  for (const name of world.driver.ready()) {
    await world.driver.step(name)
    moved = true
  }
  for (const worker of world.fleet.workers.filter(({ alive }) => alive))
    moved = (await world.fleet.progress(worker, 1, true)) || moved
  return (await answer(world, ending)) || moved
}

/** The earliest time at which something happens by itself: the sweep comes each minute, a rate limit may last for days. */
const nextTime = (world: World): number => {
  const { now } = world.time
  const next = world.driver.nextAt()
  const waits = world.reference.items().every((item) => isOver(item) || item.document.step === 'RateLimit')
  return Math.max(now + 1000, waits && Number.isFinite(next) ? next : Math.min(next, now + 60_000))
}

/** Lets everything run with no more faults until all sessions are over or at rest; a violation where one never is. */
export const comeToRest = async (world: World, ending: Ending): Promise<void> => {
  for (let rounds = 0; rounds < mostRounds; rounds++) {
    if (await round(world, ending)) continue
    if (world.reference.items().every(isOver) && world.driver.live().length === 0) return
    await world.sweep(calm)
    if (world.driver.ready().length > 0) continue
    world.time.now = nextTime(world)
  }
  const stuck = world.reference
    .items()
    .filter((item) => !isOver(item))
    .map(
      ({ id, document, runtime }) => `${id} ${document.state} at ${document.step} ${JSON.stringify(runtime)}`,
    )
  world.reference.violate(`stuck: ${stuck.join('; ')}; running: ${world.driver.live().join(', ')}`)
}

/** The journal in the bucket is what was decided, line by line. */
const requireJournal = ({ reference, segments }: World, id: string): void => {
  const keys = [...segments.keys()].filter((key) => key.includes(`/${id}/journal/`)).sort()
  const text = keys.map((key) => segments.get(key)).join('')
  if (
    text !==
    reference
      .linesOf(id)
      .map((line) => `${line}\n`)
      .join('')
  )
    reference.violate(`the journal of ${id} is not what was decided`)
}

/** A fault of the machine is counted once, however often Recover is told of it. */
const requireFaults = async ({ reference, driver }: World, { id, runtime }: SessionItem): Promise<void> => {
  let recoveries = 0
  for (let attempt = 1; attempt <= runtime.attempt; attempt++) {
    const events = await driver.machine.history(driver.machine.executionArn(`${id}-${attempt}`))
    recoveries += events.filter(({ stateEnteredEventDetails: at }) => at?.name === 'Recover').length
  }
  const faults = fromLines(reference.linesOf(id).join('\n')).filter(
    ({ type, data }) => type === 'infrastructure_fault' && data.cause !== 'ExecutionLost',
  )
  if (faults.length > recoveries)
    reference.violate(`${id} counts ${faults.length} faults, the machine met ${recoveries}`)
}

const requireProof = async (world: World, item: SessionItem): Promise<void> => {
  const { id } = item
  const answer = await world.ask('ada', `/v1/sessions/${id}/journal/verify`, undefined)
  if (answer?.body.ok !== true)
    world.reference.violate(`the journal of ${id} does not verify: ${JSON.stringify(answer?.body)}`)
  try {
    await requirePrefixes(world.platform, item)
  } catch (error) {
    world.reference.violate(`a prefix of the journal of ${id} does not fold the same: ${error}`)
  }
}

const actionsOf: Record<string, readonly string[]> = {
  ...{ 'contract/confirm': ['confirm'], 'review/approve': ['approve'], 'review/reject': ['reject'] },
  ...{ 'review/changes': ['changes'], gate: ['advance', 'loop_back', 'abort'] },
}

/** Whoever was told that their decision holds is the one by whom the gate was decided. */
const requireWinners = ({ reference, won }: World): void => {
  for (const { id, by, path } of won) {
    const actions = actionsOf[path]
    if (!actions) continue
    const told = won.filter((one) => one.id === id && one.by === by && one.path === path)
    const made = reference.resolutions.filter(
      (one) => one.id === id && one.by === by && actions.includes(one.action),
    )
    if (told.length > made.length) reference.violate(`${by} was told that ${path} of ${id} holds`)
  }
}

/** What has to be true when nothing is left to be done; that the journals prove it costs most and is left to some. */
export const requireQuiet = async (world: World, proven: boolean): Promise<void> => {
  const { reference, platform, fleet, driver } = world
  const slots = await platform.admission.slots(team)
  if (slots.length > 0) reference.violate(`slots are held: ${JSON.stringify(slots)}`)
  if ((await platform.admission.first(team)) !== null) reference.violate('somebody still waits in the queue')
  const alive = fleet.workers.filter((worker) => worker.alive)
  if (alive.length > 0) reference.violate(`workers run on: ${alive.map(({ id }) => id).join(', ')}`)
  if (driver.live().length > 0) reference.violate(`executions run on: ${driver.live().join(', ')}`)
  for (const item of reference.items()) {
    const { id, document, runtime } = item
    requireJournal(world, id)
    await requireFaults(world, item)
    if (proven) await requireProof(world, item)
    if (hasEnded(document) && !document.execution_stopped)
      reference.violate(`${id} never says that it stopped`)
    if (runtime.compute && runtime.compute.status !== 'stopped')
      reference.violate(`${id} never says that its worker stopped`)
  }
  requireWinners(world)
}
