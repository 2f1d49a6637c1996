import { computeStopped } from '../../functions/compute/stopped.ts'
import { newId } from '../../lib/ids.ts'
import type { SessionItem } from '../../lib/session/item.ts'
import { aContract } from '../support/sessions.ts'
import { anyDecision, type Decision, fittingDecision, isDue, staleDecision } from './decisions.ts'
import type { Answer, Worker } from './fleet.ts'
import { hasEnded } from './reference.ts'
import { pick } from './results.ts'
import { type Circumstances, type Fault, team } from './services.ts'
import { calm, type Person, type World } from './world.ts'

/** What may happen next; `dice` picks among the variants of it, the wrong ones included. */
export type Move = {
  kind: keyof typeof moves
  dice: number
  fault?: Fault | undefined
  /** What happens in the middle of it, where the fault is of that kind. */
  meanwhile?: { kind: keyof typeof moves; dice: number } | undefined
}

type Here = { world: World; dice: number; around: Circumstances }

const any = <Value>(from: readonly Value[], dice: number): Value | undefined =>
  from[dice % Math.max(1, from.length)]
const someSession = ({ world, dice }: Here): SessionItem | undefined =>
  any(world.reference.items(), dice >> 9)

/** Options that a session is created with; most of them as they are by default. */
export const someOptions = (dice: number) => ({
  ...{ mode: pick(['supervise', 'supervise', 'auto'], dice), yes_ship: dice % 5 === 0 },
  until: pick([null, null, null, null, 'define', 'plan', 'code', 'validate'], dice >> 2),
  ...{ keep_workspace_on_failure: dice % 3 === 0, keep_workspace_on_cancel: dice % 4 === 0 },
  ...{ repair_invokes: pick([null, 0, 5], dice >> 3), transient_retries: pick([null, 0, 3], dice >> 4) },
  ...{ max_iterations: pick([8, 1, 2, 4], dice >> 5), budget_usd: pick([null, null, 1], dice >> 6) },
  ...{ max_wall_secs: pick([3600, 60], dice >> 7), verify: pick(['clean', 'worktree'], dice >> 8) },
  contract: dice % 7 === 0 ? null : aContract(),
})

const create = async ({ world, dice, around }: Here): Promise<void> => {
  const person: Person = dice % 5 === 0 ? 'ada' : 'olga'
  const body = {
    ...{ repo: 'https://example.com/repo', intent: 'Make it work', engine_command: 'true' },
    ...someOptions(dice >> 3),
  }
  const answer = await world.ask(person, '/v1/sessions', body, around)
  const refused = body.yes_ship && person === 'olga'
  if (answer && !around.fault && answer.status !== (refused ? 403 : 201))
    world.reference.violate(`create answered ${answer.status}: ${JSON.stringify(answer.body)}`)
}

/** Whether a decision was made; a revision that changes no check is none. */
const holds = (answer: Answer | null): boolean => answer?.status === 200 && answer.body.revised !== false

/** A decision, and whether what it was answered is what has to be true. */
const decide = async (
  { world, around }: Here,
  item: SessionItem,
  decision: Decision,
  person: Person,
): Promise<Answer | null> => {
  const alone = around === calm
  const due = isDue(world.reference.item(item.id) ?? item, decision)
  const answer = await world.ask(person, `/v1/sessions/${item.id}/${decision.path}`, decision.body, around)
  world.trace.push(
    `  ${person} ${decision.path} ${answer?.status ?? 'lost'} ${String(answer?.body.code ?? '')}`,
  )
  if (!answer || answer.status >= 500) return answer
  const accepted = answer.status === 200 || answer.status === 202
  if (holds(answer)) world.won.push({ id: item.id, by: person, path: decision.path })
  const told = `${decision.path} answered ${answer.status} ${answer.body.detail ?? ''}`
  if (alone && accepted !== due) world.reference.violate(`${told}, should be ${due ? 'accepted' : 'refused'}`)
  const unknown = decision.path === 'answer' && answer.status === 404
  if (!accepted && answer.status !== 409 && !unknown) world.reference.violate(told)
  return answer
}

const ladder = (here: Here): Worker | undefined =>
  any(
    here.world.fleet.workers.filter(({ alive }) => alive),
    here.dice >> 9,
  )

const cancel = async ({ world, around }: Here, item: SessionItem, person: Person): Promise<null> => {
  const answer = await world.ask(person, `/v1/sessions/${item.id}/cancel`, {}, around)
  if (answer && answer.status !== 200 && !around.fault)
    world.reference.violate(`cancel answered ${answer.status}`)
  return null
}

const stepOf = (items: readonly SessionItem[]) => items.map(({ document }) => document.step).join()

/** What carries sessions on until one of them is a step further: the machine, a worker, a person, or time. */
const onward = async (here: Here): Promise<void> => {
  const { world, dice, around } = here
  const before = stepOf(world.reference.items())
  for (let tries = 0; tries < 6 && stepOf(world.reference.items()) === before; tries++) {
    const worker = ladder(here)
    const item = someSession(here)
    const decision = item && fittingDecision(item, dice)
    if (world.driver.ready().length > 0) await moves.machine(here)
    else if (worker && (await world.under(around, () => world.fleet.progress(worker, dice)))) continue
    else if (item && decision) await decide(here, item, decision, 'ada')
    else if (item && hasEnded(item.document) && item.runtime.settled) return moves.proceed(here)
    else {
      world.time.now = Math.max(world.time.now, Math.min(world.driver.nextAt(), world.time.now + 61_000))
      await world.sweep(around)
    }
  }
}

const jumps = [1, 5, 31, 61, 200, 605, 3700, 25 * 3600, 8 * 24 * 3600] as const

export const moves = {
  onward,
  create: async (here: Here) => {
    if (here.world.reference.items().length < 3) await create(here)
  },
  machine: async ({ world, dice, around }: Here) => {
    const name = any(world.driver.ready(), dice)
    if (name === undefined) return
    world.trace.push(`  step of ${name}`)
    await world.under(around, () => world.driver.step(name))
  },
  worker: async (here: Here) => {
    const { world, dice, around } = here
    const worker = ladder(here)
    if (worker) await world.under(around, async () => void (await world.fleet.progress(worker, dice)))
  },
  /** A worker on its straight way: everything goes well. */
  good: async (here: Here) => {
    const { world, dice, around } = here
    const worker = ladder(here)
    if (worker) await world.under(around, async () => void (await world.fleet.progress(worker, dice, true)))
  },
  die: async (here: Here) => {
    const worker = ladder(here)
    if (worker) here.world.fleet.die(worker)
  },
  late: async ({ world, dice, around }: Here) => {
    const worker = any(world.fleet.workers, dice >> 9)
    if (worker) await world.under(around, async () => void (await world.fleet.late(worker, dice)))
  },
  /** The end of a worker comes to be known, or never does. */
  notice: async ({ world, dice, around }: Here) => {
    const [worker] = world.fleet.ended.splice(0, 1)
    if (!worker || dice % 4 === 0) return
    const stopped = { team, id: worker.session, worker_id: worker.id, reason: 'exit 1' }
    await world.perform(around, () => computeStopped(world.platform, stopped))
  },
  decide: async (here: Here) => {
    const item = someSession(here)
    const decision = item && fittingDecision(item, here.dice)
    if (decision) await decide(here, item, decision, 'ada')
  },
  stray: async (here: Here) => {
    const item = someSession(here)
    if (item) await decide(here, item, anyDecision(item, here.world.reference.past, here.dice), 'bob')
  },
  stale: async (here: Here) => {
    const item = someSession(here)
    const decision = item && staleDecision(item, here.world.reference.past, here.dice)
    if (decision) await decide(here, item, decision, 'bob')
  },
  /** Two who decide the same at once: one wins, and the other is told. */
  race: async (here: Here) => {
    const { dice } = here
    const item = someSession(here)
    if (!item) return
    const first = fittingDecision(item, dice)
    if (!first || first.path === 'answer') return
    const second = fittingDecision(item, dice >> 2) ?? first
    const around = { ...here.around }
    const answers = await Promise.all([
      decide({ ...here, around }, item, first, 'ada'),
      dice % 3 === 0
        ? cancel({ ...here, around }, item, 'bob')
        : decide({ ...here, around }, item, second, 'bob'),
    ])
    if (answers.filter(holds).length > 1) here.world.reference.violate('two decided the same gate')
  },
  cancel: async (here: Here) => {
    const item = someSession(here)
    if (item) await cancel(here, item, 'olga')
  },
  proceed: async (here: Here) => {
    const { world, dice, around } = here
    const item = any(
      world.reference.items().filter(({ document }) => hasEnded(document)),
      dice >> 9,
    )
    if (!item || world.reference.items().length > 3) return
    const { state, execution_stopped, retained_work } = item.document
    const due = execution_stopped && (state === 'merged' || retained_work)
    const answer = await world.ask('ada', `/v1/sessions/${item.id}/continue`, { intent: 'go on' }, around)
    if (answer && around === calm && (answer.status === 201) !== due)
      world.reference.violate(`continue of a ${state} session answered ${answer.status}`)
  },
  /** Asked twice with one key, whatever becomes of the first: one session. */
  twice: async ({ world, around }: Here) => {
    if (world.reference.items().length > 2) return
    const before = world.reference.items().length
    const body = { repo: 'https://example.com/repo', intent: 'Once', engine_command: 'true' }
    const key = newId('evt')
    await world.ask('ada', '/v1/sessions', body, around, key)
    world.time.now += 61_000
    const again = await world.ask('ada', '/v1/sessions', body, calm, key)
    if (again?.status !== 201) world.reference.violate(`a repeat answered ${again?.status}`)
    if (world.reference.items().length > before + 1) world.reference.violate('one call made two sessions')
  },
  /** What was given up goes on after all. */
  wake: async ({ world, dice }: Here) => {
    const [wake] = world.stalled.splice(dice % Math.max(1, world.stalled.length), 1)
    await wake?.()
  },
  time: async ({ world, dice }: Here) => {
    world.time.now += 1000 * pick(jumps, dice)
  },
  /** The clock is put right, and was ahead. */
  back: async ({ world, dice }: Here) => {
    world.time.now -= 1000 * pick([1, 30, 61], dice)
  },
  sweep: async ({ world, around }: Here) => world.sweep(around),
  /** Somebody stops an execution behind our back. */
  stop: async ({ world, dice }: Here) => {
    const name = any(world.driver.live(), dice)
    const { machine } = world.driver
    if (name !== undefined) await machine.stop(machine.executionArn(name), 'Stopped', 'by hand')
  },
  /** The whole service ends and begins again: workers die with it, and executions may. */
  restart: async ({ world, dice, around }: Here) => {
    const { machine, live } = world.driver
    for (const worker of world.fleet.workers) world.fleet.die(worker)
    world.stalled.length = 0
    world.fleet.ended.length = 0
    if (dice % 2 === 0)
      for (const name of live()) await machine.stop(machine.executionArn(name), 'Restart', '')
    await world.sweep(around, true)
  },
} as const

/** Makes one move. */
export const make = async (world: World, { kind, dice, fault, meanwhile }: Move): Promise<void> => {
  world.trace.push(`${kind} ${dice}${fault ? ` ${fault.kind} ${fault.when} call ${fault.call}` : ''}`)
  const around: Circumstances = fault
    ? {
        ...{ fault, dice, stalled: (wake) => world.stalled.push(wake) },
        meanwhile: async () => (meanwhile ? among(world, meanwhile) : undefined),
      }
    : calm
  await moves[kind]({ world, dice, around })
}

/** Makes a move in the middle of another: what it meets need not be what it saw. */
const among = async (world: World, { kind, dice }: Pick<Move, 'kind' | 'dice'>): Promise<void> => {
  world.trace.push(`  meanwhile ${kind} ${dice}`)
  await moves[kind]({ world, dice, around: { ...calm } })
}
