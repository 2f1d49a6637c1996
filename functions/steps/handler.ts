import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { newSecret } from '../../lib/ids.ts'
import { limits } from '../../lib/limits.ts'
import { passedBy, stepOutput } from '../../lib/session/advance.ts'
import { decide } from '../../lib/session/decide.ts'
import { dispatch, enterGate, plan, rest, settle } from '../../lib/session/handlers.ts'
import { arrived, type Change, type SessionItem, type StepOutput } from '../../lib/session/item.ts'
import { recover, wasDealtWith } from '../../lib/session/recover.ts'
import { isGateStep, isTerminal, type Step, stepSchema, steps } from '../../lib/session/states.ts'
import { transition } from '../../lib/store/effects.ts'
import type { Platform } from '../../lib/store/platform.ts'
import { askForSlot, giveBackSlot } from '../../lib/store/queue.ts'
import { seal } from '../../lib/store/sealing.ts'
import { firstOf } from '../../lib/text/shorten.ts'
import { computeStopped } from '../compute/stopped.ts'

/** What the state machine sends: ids, the step, and for a parked step its token. */
const stepEventSchema = z.object({
  step: z.union([stepSchema, z.literal('Recover')]),
  team: z.string(),
  session_id: z.string(),
  execution: z.string(),
  task_token: z.string().optional(),
  error: z.string().optional(),
  cause: z.string().optional(),
  /** What the step before said; executions that began before this was handed on don't tell. */
  at: z.number().int().optional(),
  away: z.number().int().default(0),
})
type StepEvent = z.infer<typeof stepEventSchema>
/** What Recover says besides: the seconds to wait before the next try. */
type Recovery = StepOutput & { back_off: number }

/** Where the session is, for the machine to go on from. */
const outputAt = (
  platform: Platform,
  { document, journal_head: { sequence: at } }: SessionItem,
  note: string,
  away = 0,
): StepOutput => {
  const rate = { reset_at: document.rate_limit?.reset_at ?? null, now: platform.clock() }
  return stepOutput(document.step, note, rate, { at, away })
}

/**
 * The answer to a step that the session is not at. A machine that is sent about without end would use up its history, so
 * after too many in a row this is a fault, which Recover counts and backs off from.
 */
const passBy = (platform: Platform, { away, step }: StepEvent, item: SessionItem): StepOutput => {
  if (away >= limits.sentAway)
    throw new Error(
      `${away} steps in a row had nothing to do; ${step} found the session at ${item.document.step}`,
    )
  return outputAt(platform, item, passedBy, away + 1)
}

/** The worker to start for a command, and the one before it that has to be gone first. */
type Launch = { starts: string; replaces: string | null }

/** Launches a worker; the launch can be repeated by the next dispatch, so its failure is a fault. */
const launch = async (platform: Platform, item: SessionItem, { starts, replaces }: Launch) => {
  const { team, id: session_id } = item
  if (replaces !== null) {
    await platform.compute.stop(replaces)
    const reason = 'another worker takes its place'
    await computeStopped(platform, { team, id: session_id, worker_id: replaces, reason })
  }
  await platform.admission.take(team, session_id)
  // Settle may have given the slot back before we took it.
  const { document, runtime } = await platform.sessions.require(item)
  if (isTerminal(document.state)) return giveBackSlot(platform, team, session_id)
  if (runtime.compute?.id !== starts) return
  const token = newSecret()
  const expiresAt = platform.clock() + limits.sessionTokenMs
  await platform.tokens.add(token, { kind: 'worker', team, session_id, worker_id: starts }, expiresAt)
  await platform.compute.launch({ id: starts, team, session_id, token })
}

/**
 * Whether a step comes from an execution that another has replaced; it may not touch the session. The answer sends it to
 * no step, so it ends.
 */
const isReplaced = (platform: Platform, event: StepEvent, { id, runtime }: SessionItem): boolean =>
  event.execution !== platform.machine.executionArn(`${id}-${runtime.attempt}`)
const replaced = stepOutput('replaced', 'another execution of this session has taken over')

/** What a parked step writes on its arrival. */
const enter = (
  item: SessionItem,
  step: Step,
  token: string,
  now: number,
): { change: Change; launch: Launch | null } => {
  const { compute, queued_at } = item.runtime
  if (step === 'Admit') {
    const runtime = { task: { step, token }, queued_at: queued_at ?? item.document.created_at }
    return { change: { actor: { kind: 'system', id: step }, facts: [], runtime }, launch: null }
  }
  if (isGateStep(step) || steps[step].kind === 'wait')
    return { change: enterGate(item, step, token), launch: null }
  const { change, launch: starts } = dispatch(item, step, token, now)
  const replaces = compute && compute.status !== 'stopped' ? compute.id : null
  return { change, launch: starts === null ? null : { starts, replaces } }
}

/** Whether a call is one that the machine gave up on, and that comes behind a step which was entered since. */
const isStale = ({ at }: StepEvent, { runtime }: SessionItem): boolean =>
  at !== undefined && runtime.entered_at !== null && at < runtime.entered_at

/** The write of a step that has arrived; what it proves of the answers before it holds for no call from before. */
const heeded = ({ at }: StepEvent, item: SessionItem, change: Change): Change =>
  arrived(item, { ...change, runtime: { ...change.runtime, entered_at: at ?? null } })

/** Whether a session waits for this very step, in this execution. */
const isAwaited = (platform: Platform, event: StepEvent, item: SessionItem, step: Step): boolean =>
  !isReplaced(platform, event, item) &&
  !isStale(event, item) &&
  item.document.step === step &&
  !item.runtime.settled

/** The answer to a step that has nothing to do here; null when the session waits for this very step. */
const sentAway = (platform: Platform, event: StepEvent, item: SessionItem, step: Step): StepOutput | null => {
  if (isReplaced(platform, event, item)) return replaced
  return isAwaited(platform, event, item, step) ? null : passBy(platform, event, item)
}

/** Whether nothing of a session runs while it is where it is, so that its slot can go to another. */
const runsNothing = ({ document }: SessionItem): boolean =>
  document.gate !== null || steps[document.step].kind === 'wait'

/** Ends whatever runs for a session and lets another have its slot. Harmless to repeat. */
const quiet = async (
  platform: Platform,
  { team, id, runtime }: SessionItem,
  reason: string,
): Promise<void> => {
  if (runtime.compute && runtime.compute.status !== 'stopped') {
    await platform.compute.stop(runtime.compute.id)
    await computeStopped(platform, { team, id, worker_id: runtime.compute.id, reason })
  }
  await giveBackSlot(platform, team, id, runtime.queued_at)
}

/** What came of a step's arrival: it was sent away, or it parked and may have a worker to launch. */
type Arrival = {
  item: SessionItem
  sentAway: StepOutput | null
  launch: Launch | null
  /** Another token on which this very step is parked; nothing was written then. */
  parkedOn: string | null
}

/** Writes that a step has arrived on its token, unless it is parked on another that is not known as dead. */
const arrive = async (
  platform: Platform,
  event: StepEvent,
  { step, token, dead }: { step: Step; token: string; dead: string | null },
): Promise<Arrival> => {
  const id = { team: event.team, id: event.session_id }
  const arrival: Omit<Arrival, 'item'> = { sentAway: null, launch: null, parkedOn: null }
  const item = await transition(platform, id, (current): Change | null => {
    const { task } = current.runtime
    Object.assign(arrival, {
      launch: null,
      parkedOn: null,
      sentAway: sentAway(platform, event, current, step),
    })
    if (arrival.sentAway !== null || task?.token === token) return null
    if (task?.step === step && task.token !== dead) {
      arrival.parkedOn = task.token
      return null
    }
    const entered = enter(current, step, token, platform.clock())
    arrival.launch = entered.launch
    return heeded(event, current, entered.change)
  })
  return { item, ...arrival }
}

/**
 * Parks a step on its token. A step that the session has left is answered at once with where the session is. A call that
 * the machine gave up on may come behind the one that it made instead: the token that the machine waits for stays.
 */
const park = async (platform: Platform, event: StepEvent, step: Step, token: string): Promise<void> => {
  let arrival = await arrive(platform, event, { step, token, dead: null })
  for (let dead = arrival.parkedOn; dead !== null; dead = arrival.parkedOn) {
    if (await platform.machine.heartbeat(dead)) return
    arrival = await arrive(platform, event, { step, token, dead })
  }
  const { item, sentAway: away, launch: starts } = arrival
  if (away !== null) await platform.machine.answer({ ok: true, sequence: null, token, output: away })
  else if (step === 'Admit') await askForSlot(platform, item.team, item.id, item.runtime.queued_at ?? '')
  else if (starts) await launch(platform, item, starts)
  else if (runsNothing(item)) await quiet(platform, item, 'the session waits')
}

/**
 * Seals the journal of a session that is over, where that is quickly done. What it does not come to is left to the
 * sweep: the session is what it is, and its execution does not wait for this.
 */
const sealAtOnce = async (platform: Platform, item: SessionItem): Promise<void> => {
  const { entries, ms } = limits.seal.atOnce
  if (item.journal_head.sequence >= entries) return
  await Promise.race([seal(platform, item), sleep(ms, undefined, { ref: false })]).catch(() => {})
}

const runSettle = async (platform: Platform, event: StepEvent): Promise<StepOutput> => {
  const id = { team: event.team, id: event.session_id }
  // Before the last write: what is repeated after a crash must not be able to forget the slot.
  await quiet(platform, await platform.sessions.require(id), 'the session ended')
  const item = await transition(platform, id, (current) =>
    current.runtime.settled ? null : heeded(event, current, settle(current)),
  )
  await sealAtOnce(platform, item)
  const { state, failure_kind, error, result_branch } = item.document
  return stepOutput(state, error ?? result_branch ?? failure_kind ?? '')
}

/** A stopped session's execution ends here, with nothing left running; a person starts the next one. */
const runRest = async (platform: Platform, event: StepEvent): Promise<StepOutput> => {
  const id = { team: event.team, id: event.session_id }
  const isHere = (item: SessionItem) => isAwaited(platform, event, item, 'Rest')
  const before = await platform.sessions.require(id)
  if (isHere(before)) await quiet(platform, before, 'the session rests')
  const item = await transition(platform, id, (current) =>
    isHere(current) && !current.runtime.resting ? heeded(event, current, rest()) : null,
  )
  if (isReplaced(platform, event, item)) return replaced
  return isHere(item) ? stepOutput('stopped', item.document.stop_reason ?? '') : passBy(platform, event, item)
}

const runHandler = async (platform: Platform, event: StepEvent, step: Step): Promise<StepOutput> => {
  const id = { team: event.team, id: event.session_id }
  if (step === 'Settle') return runSettle(platform, event)
  if (step === 'Rest') return runRest(platform, event)
  const told: { note: string | null } = { note: null }
  const item = await transition(platform, id, (current): Change | null => {
    told.note = null
    if (!isAwaited(platform, event, current, step)) return null
    told.note = ''
    if (step === 'Plan') return heeded(event, current, plan(current, platform.clock()))
    const decision = decide(current, platform.clock())
    told.note = decision.note
    return heeded(event, current, decision.change)
  })
  if (isReplaced(platform, event, item)) return replaced
  return told.note === null ? passBy(platform, event, item) : outputAt(platform, item, told.note)
}

/** The first fault is usually one lost worker, and is tried again at once. */
const backoffSecs = (faults: number): number => (faults <= 1 ? 0 : 2 ** (faults - 1))

const runRecover = async (platform: Platform, event: StepEvent): Promise<Recovery> => {
  const id = { team: event.team, id: event.session_id }
  const fault = { error: event.error ?? 'Unknown', cause: event.cause ?? '', at: event.at ?? null }
  const before = await platform.sessions.require(id)
  if (isReplaced(platform, event, before)) return { ...replaced, back_off: 0 }
  if (!wasDealtWith(before, fault) && before.runtime.compute && before.runtime.compute.status !== 'stopped') {
    // The old worker goes first: two must never work on one session.
    await platform.compute.stop(before.runtime.compute.id)
    await computeStopped(platform, { ...id, worker_id: before.runtime.compute.id, reason: fault.error })
  }
  const item = await transition(platform, id, (current) =>
    isTerminal(current.document.state) ? null : recover(current, fault, platform.clock()),
  )
  return {
    ...outputAt(platform, item, `${fault.error}: ${fault.cause}`),
    back_off: runsNothing(item) ? 0 : backoffSecs(item.document.infra_failures),
  }
}

/** What the machine is told of a fault of ours; the whole of it is in the log, as its cause. */
export class StepFault extends Error {
  constructor(cause: unknown) {
    const { name, message } = cause instanceof Error ? cause : { name: 'Error', message: String(cause) }
    super(firstOf(`${name}: ${message}`, limits.stateOutput / 4), { cause })
    this.name = 'StepFault'
    // A function's stack is part of what the machine is told, and can be longer than a state may be.
    this.stack = `${this.name}: ${this.message}`
  }
}

const run = async (platform: Platform, event: StepEvent): Promise<StepOutput | null> => {
  if (event.step === 'Recover') return runRecover(platform, event)
  if (event.task_token === undefined) return runHandler(platform, event, event.step)
  await park(platform, event, event.step, event.task_token)
  return null
}

/** The handler of every step of the machine: one validated transition each. Throws StepFault. */
export const createStepHandler =
  (platform: Platform) =>
  async (input: unknown): Promise<StepOutput | null> => {
    try {
      return await run(platform, stepEventSchema.parse(input))
    } catch (error) {
      throw new StepFault(error)
    }
  }
