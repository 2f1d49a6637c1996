import { ListExecutionsCommand } from '@aws-sdk/client-sfn'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newId } from '../../../lib/ids.ts'
import { fromSnapshotText, snapshotSchema } from '../../../lib/journal/snapshot.ts'
import { verifyJournal } from '../../../lib/journal/verify.ts'
import { cancel } from '../../../lib/session/controls.ts'
import type { SessionItem } from '../../../lib/session/item.ts'
import { carryOut, drained, transition } from '../../../lib/store/effects.ts'
import { objectKey } from '../../../lib/store/keys.ts'
import { temporaryFolder } from '../../repositories.ts'
import { Crash, crashAt, type Pieces, startPieces } from '../../support/pieces.ts'
import { requirePrefixes } from '../../support/prefixes.ts'
import { ada, creationChange, system } from '../../support/sessions.ts'

let pieces: Pieces
beforeAll(async () => {
  pieces = await startPieces(temporaryFolder())
}, 60_000)
afterAll(() => pieces.close())

let teams = 0
const fresh = () => ({ team: `team-${teams++}`, id: newId('ses') })
type Id = ReturnType<typeof fresh>

const start = async (id: Id) => {
  const { item } = await pieces.platform.sessions.create(id, creationChange(id.id, id.team))
  return carryOut(pieces.platform, item)
}
const park = async (id: Id) => {
  const token = await pieces.tokenOf(id.id)
  return transition(pieces.platform, id, (item) =>
    item.runtime.task ? null : { actor: system, facts: [], runtime: { task: { step: 'Admit', token } } },
  )
}
const stop = (id: Id) => transition(pieces.platform, id, (item) => cancel(item, 'enough', ada))

const ended = async (arn: string): Promise<string> => {
  for (;;) {
    const status = await pieces.platform.machine.status(arn)
    if (status !== 'RUNNING') return status
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

const requireProven = async (item: SessionItem) => {
  const entries = await pieces.platform.journals.after(item, -1, 10_000)
  expect(verifyJournal(entries, { head: item.journal_head, document: item.document })).toMatchObject({
    ok: true,
  })
}

/** What the sweep does for one that is half-done; a first answer to a step leaves noting it to the step that follows. */
const repair = async (id: Id) => {
  const item = await carryOut(pieces.platform, await pieces.platform.sessions.require(id))
  return item.outbox.length === 0 ? item : carryOut(pieces.platform, item)
}

/** Everything that was decided has happened, and happened once. */
const requireDone = async (id: Id) => {
  // The next step of the machine would note what was done with its own write; here nothing follows.
  const item = await repair(id)
  const { runtime, outbox } = item
  expect({ outbox, answers: runtime.answers, start: runtime.start_pending }).toEqual({
    ...{ outbox: [], answers: [], start: false },
  })
  await requireProven(item)
  expect(item.document.state).toBe('abandoned')
  const arn = runtime.execution_arn ?? ''
  expect(await ended(arn)).toBe('SUCCEEDED')
  const types = (await pieces.platform.machine.history(arn)).map(({ type }) => type)
  expect(types.filter((type) => type === 'TaskSucceeded')).toHaveLength(1)
  expect(pieces.startsOf(id.id)).toBe(1)
  await requirePrefixes(pieces.platform, item)
  const kept = await pieces.platform.blobs.get(objectKey.snapshot(id.team, id.id, item.journal_head.sequence))
  expect(fromSnapshotText(snapshotSchema, kept ?? '')).toMatchObject({ document: item.document })
}

describe('what a write decided is carried out', () => {
  it('when nothing goes wrong', async () => {
    const id = fresh()
    for (const step of [start, park, stop]) await step(id)
    await requireDone(id)
  })

  it('when it is carried out from ten places at once', async () => {
    const id = fresh()
    await Promise.all(Array.from({ length: 10 }, () => start(id)))
    await park(id)
    await Promise.all(Array.from({ length: 10 }, () => stop(id)))
    await repair(id)
    await requireDone(id)
  }, 30_000)

  it.each(['before', 'after'] as const)(
    'when it crashes %s any one of its calls and is carried out again',
    async (when) => {
      for (let n = 1; ; n++) {
        const id = fresh()
        const crash = crashAt(pieces.clients, n, when)
        for (const step of [start, park, stop]) {
          await step(id).catch((error) => {
            if (!(error instanceof Crash)) throw error
            return step(id)
          })
        }
        const { fired } = crash
        crashAt(pieces.clients, 0, when)
        await requireDone(id)
        if (!fired) {
          expect(n).toBeGreaterThan(12)
          return
        }
      }
    },
    60_000,
  )

  it('so that what was written before a crash is read by whoever only looks, and done when it is repaired', async () => {
    const id = fresh()
    for (const step of [start, park]) await step(id)
    // The write itself is the second call: read, write.
    crashAt(pieces.clients, 2, 'after')
    await expect(stop(id)).rejects.toThrow(Crash)
    crashAt(pieces.clients, 0, 'after')
    const left = await pieces.platform.sessions.require(id)
    expect(left.outbox.length).toBeGreaterThan(0)
    const readers = await Promise.all(Array.from({ length: 5 }, () => drained(pieces.platform, id)))
    await requireProven(left)
    // The item is the writers': no reader has changed it.
    expect(readers).toEqual(readers.map(() => left))
    expect(await pieces.platform.sessions.require(id)).toEqual(left)
    await requireDone(id)
  })
})

describe('an execution', () => {
  it('is started once for an attempt, whoever asks and how often', async () => {
    const id = fresh()
    const arns = await Promise.all(
      Array.from({ length: 5 }, () => pieces.platform.machine.start({ ...id, attempt: 1 })),
    )
    expect(new Set(arns).size).toBe(1)
    const all = await pieces.clients.sfn.send(
      new ListExecutionsCommand({ stateMachineArn: pieces.settings.state_machine_arn, maxResults: 1000 }),
    )
    expect((all.executions ?? []).filter(({ name }) => name === `${id.id}-1`)).toHaveLength(1)
  })

  it('takes an answer once and says of every later one that nobody waits', async () => {
    const id = fresh()
    await start(id)
    const answer = {
      ok: true as const,
      sequence: null,
      token: await pieces.tokenOf(id.id),
      output: { next: 'x', note: '', wait: 1, at: 0, away: 0 },
    }
    expect(await pieces.platform.machine.answer(answer)).toBe(true)
    expect(await pieces.platform.machine.answer(answer)).toBe(false)
    expect(await pieces.platform.machine.heartbeat(answer.token)).toBe(false)
    expect(await pieces.platform.machine.answer({ ...answer, token: 'never given' })).toBe(false)
  })
})
