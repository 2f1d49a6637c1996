import { GatehouseError } from '../errors.ts'
import type { Actor } from '../journal/entry.ts'
import type { Fact } from '../journal/facts.ts'
import { limits } from '../limits.ts'
import type { Change, SessionItem, TaskAnswer } from './item.ts'
import { type By, move, type Trigger } from './lifecycle.ts'
import { isTerminal } from './states.ts'

const clip = (text: string, max: number) => (text.length <= max ? text : `${text.slice(0, max - 1)}…`)

/** The answer that lets a parked step go on; none when nothing is parked. */
export const answerTask = (item: SessionItem, next: string, note: string): TaskAnswer[] =>
  item.runtime.task
    ? [
        {
          ok: true,
          sequence: null,
          token: item.runtime.task.token,
          output: { next, note: clip(note, limits.stateOutput / 2) },
        },
      ]
    : []

/** The answer that tells the machine of a fault around a parked step; its Recover decides what follows. */
export const failTask = (item: SessionItem, error: string, cause: string): TaskAnswer[] =>
  item.runtime.task ? [{ ok: false, sequence: null, token: item.runtime.task.token, error, cause }] : []

/**
 * The change that a trigger makes: the given facts, the step's end and the change of state, and the answer to the
 * machine. Throws `illegal_transition` where the lifecycle has no such move, with nothing changed.
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
  if (!to) {
    const decided = isTerminal(document.state) ? ' and has ended' : ''
    throw new GatehouseError(
      isTerminal(document.state) ? 'already_decided' : 'illegal_transition',
      `${how.trigger} is not possible: session ${document.id} is ${document.state} at step ${document.step}${decided}`,
    )
  }
  const facts: Fact[] = [...(how.facts ?? [])]
  facts.push({ type: 'step_completed', data: { step: document.step, trigger: how.trigger, next: to.next } })
  if (to.to !== document.state) {
    facts.push({ type: 'state_changed', data: { from: document.state, to: to.to, trigger: how.trigger } })
  }
  // A gate opens after the state it belongs to; nothing follows a terminal state but its clean-up.
  facts.push(...(how.after ?? []))
  return {
    actor: how.actor,
    facts,
    runtime: {
      task: null,
      command: null,
      last_command_id: runtime.command?.id ?? runtime.last_command_id,
      answers: [...runtime.answers, ...answerTask(item, to.next, how.note)],
    },
  }
}
