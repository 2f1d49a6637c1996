import { isError } from '../errors.ts'
import type { Change, SessionItem } from '../session/item.ts'
import type { Platform } from './platform.ts'
import type { Decide } from './sessions.ts'

type Id = { team: string; id: string }

const system = { kind: 'system' as const, id: 'effects' }

/** Brings what is in an item's outbox to the journal, with a snapshot where one is due. Harmless to repeat. */
export const persist = async (
  { journals, states }: Pick<Platform, 'journals' | 'states'>,
  item: SessionItem,
): Promise<void> => {
  await Promise.all([journals.drain(item), states.save(item)])
}

/**
 * Carries out what a write decided and could not do itself: journal lines to S3, the execution's start, the answers to
 * parked steps; then notes on the item that it is done, or leaves that to the step that an answer leads to. Each part can be repeated, so a crash anywhere in it is
 * repaired by calling it again (the sweep does), and two callers at once do no harm.
 */
export const carryOut = async (platform: Platform, item: SessionItem): Promise<SessionItem> => {
  const { sessions, machine } = platform
  const { outbox, runtime } = item
  if (outbox.length === 0 && runtime.answers.length === 0 && !runtime.start_pending) return item

  await persist(platform, item)
  const started = runtime.start_pending
    ? await machine.start({ team: item.team, id: item.id, attempt: runtime.attempt })
    : null
  // A token that nobody waits for any more is as done as one that was answered; the sweep looks after the session.
  let taken = runtime.answers.length > 0
  for (const answer of runtime.answers) taken = (await machine.answer(answer)) && taken
  // The machine's next step notes all this with its own write (see `arrived`).
  if (taken && started === null) return item

  const answered = new Set(runtime.answers.map(({ token }) => token))
  const noted = ({ runtime: now }: SessionItem): Change => {
    const begun = started !== null && now.start_pending && now.attempt === runtime.attempt
    return {
      actor: system,
      facts: [],
      drained: item.journal_head.sequence,
      runtime: {
        answers: now.answers.filter(({ token }) => !answered.has(token)),
        ...(begun ? { start_pending: false, execution_arn: started } : {}),
      },
    }
  }
  // The item in hand is nearly always still the current one, which saves reading it again.
  try {
    return await sessions.commit(item, noted(item))
  } catch (error) {
    if (!isError(error, 'conflict')) throw error
    return sessions.update(item, noted)
  }
}

/** Decides on the current item, writes, and carries out what the write decided. */
export const transition = async (platform: Platform, id: Id, decide: Decide): Promise<SessionItem> =>
  carryOut(platform, await platform.sessions.update(id, decide))

/**
 * The session with everything up to its head in the journal. Copies the outbox there and leaves the item as it is: to
 * note it is the writer's part, and however many read, they never stand in a writer's way. Throws `not_found`.
 */
export const drained = async (
  { sessions, journals }: Pick<Platform, 'sessions' | 'journals'>,
  id: Id,
): Promise<SessionItem> => {
  const item = await sessions.require(id)
  await journals.drain(item)
  return item
}
