import { fromLines } from '../../../lib/journal/entry.ts'
import { advance } from '../../../lib/session/advance.ts'
import { complete } from '../../../lib/session/completions.ts'
import { confirm } from '../../../lib/session/contract-decisions.ts'
import { resume } from '../../../lib/session/controls.ts'
import { decide } from '../../../lib/session/decide.ts'
import { decideGate, type GateAction } from '../../../lib/session/gate-decisions.ts'
import { dispatch, enterGate, plan, rest, settle } from '../../../lib/session/handlers.ts'
import { type Change, changeItem, type SessionItem } from '../../../lib/session/item.ts'
import type { Result } from '../../../lib/session/protocol.ts'
import { recover } from '../../../lib/session/recover.ts'
import { approve } from '../../../lib/session/review-decisions.ts'
import { isTerminal, isWorkerStep, type Step } from '../../../lib/session/states.ts'
import { takeLease } from '../../../lib/session/worker.ts'
import { ada, epochMs, newSession, system } from '../../support/sessions.ts'
import * as results from './results.ts'

type Created = NonNullable<Parameters<typeof newSession>[0]>

/**
 * A session that its own pure functions drive, in place of the machine, its worker and the people. Its clock moves by
 * `later` alone.
 */
export const setOut = (created: Created = {}) => {
  let item = newSession(created)
  let now = epochMs
  let tokens = 0
  let faults = 0

  const write = (change: Change | null): SessionItem => {
    if (change) item = changeItem(item, change, new Date(now).toISOString())
    return item
  }

  /** The machine enters the step at which the session is: a handler does its part, another step parks. */
  const enter = (): SessionItem => {
    const { step } = item.document
    const token = `token-${++tokens}`
    if (step === 'Plan') return write(plan(item, now))
    if (step === 'Decide') return write(decide(item, now).change)
    if (step === 'Rest') return write(rest())
    if (step === 'Settle') return write(settle(item))
    if (step === 'Admit') return write({ actor: system, facts: [], runtime: { task: { step, token } } })
    return write(isWorkerStep(step) ? dispatch(item, step, token, now).change : enterGate(item, step, token))
  }

  /** The worker takes the step's command and ends it with a result, unless the step did not come to that. */
  const work = (result: Result, reviewId = 'rev_01h455vb4pex5vsknk084sn02q'): SessionItem => {
    enter()
    const id = item.runtime.compute?.id
    if (isTerminal(item.document.state) || id === undefined) return item
    if (item.runtime.lease.worker_id !== id) write(takeLease(item, id, 'claim', now))
    const actor = { kind: 'worker', id } as const
    return write(complete(item, result, { actor, events: [], artifact: 'results', reviewId, now }))
  }

  const gateId = (): string => item.document.gate?.id ?? 'none'
  const gate = (action: GateAction, gate_id = gateId()): SessionItem =>
    write(decideGate(item, { gate_id, action, note: null }, ada, now))

  /** The step's fault as the machine reports it, each a new one. */
  const lose = (error = 'WorkerLost'): SessionItem =>
    write(recover(item, { error, cause: 'gone', at: ++faults }, now))

  const parked = (answer: () => SessionItem) => (): SessionItem => {
    const { step } = enter().document
    return step === item.document.step && item.document.gate ? answer() : item
  }
  const usual: Record<Step, () => SessionItem> = {
    Admit: () => write(advance(enter(), { trigger: 'admitted', by: 'system', actor: system, note: '' })),
    Preflight: () => work(results.aPreflight()),
    PreflightGate: parked(() => gate('advance')),
    Prepare: () => work(results.aPreparation),
    Draft: () => work(results.aDraft({ contract: item.document.contract ?? results.aDraft().contract })),
    Baseline: () => work(results.aBaseline(results.failed)),
    Confirm: parked(() =>
      write(confirm(item, { contract_hash: item.document.contract_hash ?? '', contract: null }, ada)),
    ),
    Plan: enter,
    Code: () => work(results.aRun()),
    Validate: () => work(results.validation(results.passed)),
    Decide: enter,
    RateLimit: () => {
      enter()
      now = Math.max(now, Date.parse(item.document.rate_limit?.reset_at ?? ''))
      return lose('States.Timeout')
    },
    ValidateGate: parked(() => gate('advance')),
    Verify: () => work(results.verification()),
    Review: parked(() =>
      write(approve(item, { review_id: item.document.review_identity?.review_id ?? '', comment: null }, ada)),
    ),
    Deliver: () => work(results.aDelivery),
    Rest: () => write(resume(enter(), null, ada, now)),
    Settle: enter,
  }

  const road = {
    get item() {
      return item
    },
    get document() {
      return item.document
    },
    get now() {
      return now
    },
    later: (ms: number): void => {
      now += ms
    },
    ...{ write, enter, work, gate, lose },
    /** Goes on as usual, everything in order and everybody willing, until the session is at the step. */
    to: (step: Step): void => {
      for (let moves = 0; moves < 100 && item.document.step !== step; moves++) usual[item.document.step]()
      if (item.document.step !== step) throw new Error(`the session came to ${item.document.step}`)
    },
    /** One step as usual. */
    onward: (): SessionItem => usual[item.document.step](),
    /** One iteration: the engine's run, its evaluation and what is decided of it. */
    iterate: (run: Result, ...checked: Parameters<typeof results.validation>): SessionItem => {
      road.to('Code')
      work(run)
      if (item.document.step === 'Validate') work(results.validation(...checked))
      return item.document.step === 'Decide' ? enter() : item
    },
    /** The data of the facts of a type, in order. */
    told: (type: string): Record<string, unknown>[] =>
      fromLines(item.outbox.map(({ line }) => line).join('\n'))
        .filter((entry) => entry.type === type)
        .map(({ data }) => data),
  }
  return road
}

/** A session that has come to a step in the usual way. */
export const setOutTo = (step: Step, created: Created = {}): ReturnType<typeof setOut> => {
  const road = setOut(created)
  road.to(step)
  return road
}
