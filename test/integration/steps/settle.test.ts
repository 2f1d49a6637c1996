import { afterAll, beforeAll, expect, test } from 'vitest'
import { createStepHandler } from '../../../functions/steps/handler.ts'
import { newId } from '../../../lib/ids.ts'
import type { Fact } from '../../../lib/journal/facts.ts'
import { limits } from '../../../lib/limits.ts'
import type { SessionItem } from '../../../lib/session/item.ts'
import type { Platform } from '../../../lib/store/platform.ts'
import { proveJournal } from '../../../lib/store/proof.ts'
import { temporaryFolder } from '../../repositories.ts'
import { type Pieces, startPieces } from '../../support/pieces.ts'
import { creationChange, system } from '../../support/sessions.ts'

let pieces: Pieces
beforeAll(async () => {
  pieces = await startPieces(temporaryFolder())
}, 60_000)
afterAll(() => pieces.close())

/** A session that has ended and comes to its last step. */
const ended = async (more: readonly Fact[] = []): Promise<SessionItem> => {
  const id = { team: 'team', id: newId('ses') }
  const facts: Fact[] = [
    { type: 'step_completed', data: { step: 'Deliver', trigger: 'test', next: 'Settle' } },
    { type: 'state_changed', data: { from: 'created', to: 'merged', trigger: 'test' } },
    ...more,
  ]
  const { item } = await pieces.platform.sessions.create(id, creationChange(id.id, id.team))
  return pieces.platform.sessions.commit(item, {
    ...{ actor: system, facts, runtime: { start_pending: false } },
  })
}

const settle = (platform: Platform, { team, id, runtime }: SessionItem) =>
  createStepHandler(platform)({
    ...{ step: 'Settle', team, session_id: id },
    execution: platform.machine.executionArn(`${id}-${runtime.attempt}`),
  })

test('a session’s last step seals its journal, once, and proves with it', async () => {
  const item = await ended()
  expect(await settle(pieces.platform, item)).toMatchObject({ next: 'merged' })
  const sealed = await pieces.platform.sessions.require(item)
  expect(sealed.runtime).toMatchObject({
    settled: true,
    sealed: { through: sealed.journal_head.sequence, cleared: false },
  })
  expect(await proveJournal(pieces.platform, item)).toMatchObject({ ok: true })
  expect(await settle(pieces.platform, item)).toMatchObject({ next: 'merged' })
  expect((await pieces.platform.sessions.require(item)).revision).toBe(sealed.revision)
})

test('a session is settled though its journal can’t be sealed', async () => {
  const item = await ended()
  const { platform } = pieces
  const put = async (key: string, ...rest: [string | Buffer, string?]) => {
    if (key.includes('/sealed/')) throw new Error('the bucket takes no more')
    await platform.blobs.put(key, ...rest)
  }
  expect(await settle({ ...platform, blobs: { ...platform.blobs, put } }, item)).toMatchObject({
    next: 'merged',
  })
  const { runtime } = await platform.sessions.require(item)
  expect({ settled: runtime.settled, sealed: runtime.sealed }).toEqual({ settled: true, sealed: null })
})

test('a long journal is left to the sweep', async () => {
  const said: Fact[] = Array.from({ length: 100 }, () => ({ type: 'error', data: { message: 'x' } }))
  let item = await ended()
  while (item.journal_head.sequence < limits.seal.atOnce.entries) {
    await pieces.platform.journals.drain(item)
    const drained = item.journal_head.sequence
    item = await pieces.platform.sessions.commit(item, { actor: system, facts: said, drained })
  }
  expect(await settle(pieces.platform, item)).toMatchObject({ next: 'merged' })
  const { runtime } = await pieces.platform.sessions.require(item)
  expect({ settled: runtime.settled, sealed: runtime.sealed }).toEqual({ settled: true, sealed: null })
})
