import { GatehouseError } from '../errors.ts'
import type { Actor } from '../journal/entry.ts'
import type { Fact } from '../journal/facts.ts'
import { limits } from '../limits.ts'
import { ellipsised } from '../text/shorten.ts'
import { oneLine } from '../text/visible.ts'
import type { Document } from './document.ts'
import type { Change, SessionItem, StepOutput, TaskAnswer } from './item.ts'
import { type By, goesOnFrom, move, type Trigger } from './lifecycle.ts'
import { isTerminal, type Stage, type State, type Step } from './states.ts'

/** The note of a step that was entered when the session was elsewhere; it did nothing. */
export const passedBy = 'the session is not at this step'

/** One line whose JSON is at most three bytes for each of its characters: none of them is written as an escape of six. */
const note = (text: string) => ellipsised(oneLine(text), limits.stateOutput / 4, ({ length }) => length)

/**
 * What the machine is told when a step ends. `wait` counts from `now` to the end of a wait, at least a second; the `at` of
 * an answer that an item holds is put in by the write that decides it.
 */
export const stepOutput = (
  next: string,
  text: string,
  rate: { reset_at: string | null; now: number } = { reset_at: null, now: 0 },
  order: Pick<StepOutput, 'at' | 'away'> = { at: 0, away: 0 },
): StepOutput => ({
  next,
  note: note(text),
  wait: rate.reset_at === null ? 1 : Math.max(1, Math.ceil((Date.parse(rate.reset_at) - rate.now) / 1000)),
  ...order,
})

/** The answer that lets a parked step go on; none when nothing is parked. */
export const answerTask = (item: SessionItem, next: string, note: string): TaskAnswer[] =>
  item.runtime.task
    ? [{ ok: true, sequence: null, token: item.runtime.task.token, output: stepOutput(next, note) }]
    : []

/** The answer that tells the machine of a fault around a parked step; its Recover decides what follows. */
export const failTask = (item: SessionItem, error: string, cause: string): TaskAnswer[] =>
  item.runtime.task
    ? [{ ok: false, sequence: null, token: item.runtime.task.token, error, cause: note(cause) }]
    : []

/** The stage after which `until` holds a session back on its way; null where it does not. */
const heldAfter = (document: Document, trigger: Trigger, to: { to: State; next: Step }): Stage | null => {
  const { until, stage } = document
  if (until === null || isTerminal(to.to)) return null
  return goesOnFrom(until, trigger, stage, to.next) ? until : null
}

const refused = (document: Document, trigger: Trigger): GatehouseError => {
  const ended = isTerminal(document.state)
  return new GatehouseError(
    ended ? 'already_decided' : 'illegal_transition',
    `${trigger} is not possible: session ${document.id} is ${document.state} at step ${document.step}${ended ? ' and has ended' : ''}`,
  )
}

/**
 * The change that a trigger makes: the given facts, the step's end and the change of state, and the answer to the
 * machine. At the end of the stage that `until` names the session comes to rest instead of going on. Throws
 * `illegal_transition` where the lifecycle has no such move, with nothing changed.
 */
export const advance = (
  item: SessionItem,
  how: {
    trigger: Trigger
    by: By
    actor: Actor
    note: string
    facts?: readonly Fact[]
    after?: readonly Fact[]
  },
): Change => {
  const { document, runtime } = item
  const to = move(how.trigger, how.by, document)
  if (!to) throw refused(document, how.trigger)
  const held = heldAfter(document, how.trigger, to)
  const next = held === null ? to.next : 'Rest'
  const facts: Fact[] = [...(how.facts ?? [])]
  facts.push({ type: 'step_completed', data: { step: document.step, trigger: how.trigger, next } })
  if (to.to !== document.state) {
    facts.push({ type: 'state_changed', data: { from: document.state, to: to.to, trigger: how.trigger } })
  }
  if (held !== null) {
    const reason = `stopped after ${held}, as until asks`
    facts.push({ type: 'run_stopped', data: { stage: held, resume_at: to.next, reason } })
  }
  // A gate opens after the state it belongs to; nothing follows a terminal state but its clean-up, and at rest none is open.
  else facts.push(...(how.after ?? []))
  return {
    actor: how.actor,
    facts,
    runtime: {
      task: null,
      command: null,
      last_command_id: runtime.command?.id ?? runtime.last_command_id,
      answers: [...runtime.answers, ...answerTask(item, next, how.note)],
    },
  }
}
