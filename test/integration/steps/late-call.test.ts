import { afterAll, beforeAll, expect, test } from 'vitest'
import { createStepHandler } from '../../../functions/steps/handler.ts'
import { newId } from '../../../lib/ids.ts'
import type { Fact } from '../../../lib/journal/facts.ts'
import type { SessionItem } from '../../../lib/session/item.ts'
import { proveJournal } from '../../../lib/store/proof.ts'
import { temporaryFolder } from '../../repositories.ts'
import { type Pieces, startPieces } from '../../support/pieces.ts'
import { at, creationChange, system } from '../../support/sessions.ts'

let pieces: Pieces
beforeAll(async () => {
  pieces = await startPieces(temporaryFolder())
})
afterAll(() => pieces.close())

/** A session that stands at Plan, with an answer that is not given yet and lines that are not in the journal yet. */
const atPlan = async (): Promise<SessionItem> => {
  const id = { team: 'team', id: newId('ses') }
  const facts: Fact[] = [
    { type: 'step_completed', data: { step: 'Confirm', trigger: 'contract_confirmed', next: 'Plan' } },
    { type: 'state_changed', data: { from: 'created', to: 'contract_confirmed', trigger: 'test' } },
  ]
  const { item } = await pieces.platform.sessions.create(id, creationChange(id.id, id.team))
  const answer = {
    ok: true as const,
    sequence: null,
    token: 'token',
    output: { next: 'Plan', note: '', wait: 1 },
  }
  return pieces.platform.sessions.commit(item, {
    ...{ actor: system, facts },
    runtime: { start_pending: false, answers: [answer], entered_at: at(5000) },
  })
}

const callOf = ({ team, id, runtime }: SessionItem, entered: string) => ({
  ...{ step: 'Plan', team, session_id: id, entered },
  execution: pieces.platform.machine.executionArn(`${id}-${runtime.attempt}`),
})

test('a call from before the step that was heeded last changes nothing, and loses nothing that is still to be done', async () => {
  const handle = createStepHandler(pieces.platform)
  const item = await atPlan()
  expect(item.outbox.length).toBeGreaterThan(0)
  expect(await handle(callOf(item, at(4000)))).toMatchObject({ next: 'Plan' })
  const { document, journal_head } = await pieces.platform.sessions.require(item)
  expect({ document, journal_head }).toEqual({ document: item.document, journal_head: item.journal_head })
  expect(await proveJournal(pieces.platform, item)).toMatchObject({ ok: true })
  const lines = await pieces.platform.journals.after(item, -1, 100)
  expect(lines.map(({ sequence }) => sequence)).toEqual(item.outbox.map(({ sequence }) => sequence))
})

test('the call of the step that the machine has entered goes on, and so does a repeat of it', async () => {
  const handle = createStepHandler(pieces.platform)
  const item = await atPlan()
  for (const _ of ['once', 'again'])
    expect(await handle(callOf(item, at(6000)))).toMatchObject({ next: 'Code' })
  const { document, runtime } = await pieces.platform.sessions.require(item)
  expect({ state: document.state, entered_at: runtime.entered_at }).toEqual({
    ...{ state: 'running', entered_at: at(6000) },
  })
})
