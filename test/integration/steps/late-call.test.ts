import { afterAll, beforeAll, expect, test } from 'vitest'
import { createStepHandler } from '../../../functions/steps/handler.ts'
import { newId } from '../../../lib/ids.ts'
import type { Fact } from '../../../lib/journal/facts.ts'
import { limits } from '../../../lib/limits.ts'
import type { SessionItem } from '../../../lib/session/item.ts'
import { proveJournal } from '../../../lib/store/proof.ts'
import { temporaryFolder } from '../../repositories.ts'
import { type Pieces, startPieces } from '../../support/pieces.ts'
import { aCheckpoint, at, creationChange, system } from '../../support/sessions.ts'

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
    output: { next: 'Plan', note: '', wait: 1, at: 0, away: 0 },
  }
  return pieces.platform.sessions.commit(item, {
    ...{ actor: system, facts },
    runtime: { start_pending: false, answers: [answer], entered_at: 1 },
  })
}

const callOf = (
  { team, id, runtime }: SessionItem,
  order: { at?: number; away?: number; entered?: string },
) => ({
  ...{ step: 'Plan', team, session_id: id, ...order },
  execution: pieces.platform.machine.executionArn(`${id}-${runtime.attempt}`),
})

test('a call from before the step that was heeded last changes nothing, and loses nothing that is still to be done', async () => {
  const handle = createStepHandler(pieces.platform)
  const item = await atPlan()
  expect(item.outbox.length).toBeGreaterThan(0)
  const { sequence } = item.journal_head
  expect(await handle(callOf(item, { at: 0, away: 3 }))).toMatchObject({
    ...{ next: 'Plan', at: sequence, away: 4 },
  })
  const { document, journal_head } = await pieces.platform.sessions.require(item)
  expect({ document, journal_head }).toEqual({ document: item.document, journal_head: item.journal_head })
  expect(await proveJournal(pieces.platform, item)).toMatchObject({ ok: true })
  const lines = await pieces.platform.journals.after(item, -1, 100)
  expect(lines.map(({ sequence }) => sequence)).toEqual(item.outbox.map(({ sequence }) => sequence))
})

test('the call of the step that the machine has entered goes on, and so does a repeat of it', async () => {
  const handle = createStepHandler(pieces.platform)
  const item = await atPlan()
  const { sequence } = item.journal_head
  for (const _ of ['once', 'again'])
    expect(await handle(callOf(item, { at: sequence }))).toMatchObject({ next: 'Code' })
  const { document, runtime } = await pieces.platform.sessions.require(item)
  expect({ state: document.state, entered_at: runtime.entered_at }).toEqual({
    ...{ state: 'running', entered_at: sequence },
  })
})

test('an execution that began before its steps were told where they stand goes on', async () => {
  const handle = createStepHandler(pieces.platform)
  const item = await atPlan()
  expect(await handle(callOf(item, { entered: at(4000) }))).toMatchObject({ next: 'Code' })
})

test('a step parks though the clock went back since the step before it', async () => {
  const { platform } = pieces
  const handle = createStepHandler(platform)
  const item = await atPlan()
  const call = callOf(item, { at: item.journal_head.sequence, entered: at(5000) })
  const planned = await handle(call)
  await handle({ ...call, step: 'Code', task_token: 'code', ...planned })
  const checkpoint = aCheckpoint()
  const facts: Fact[] = [
    { type: 'checkpoint_created', data: checkpoint },
    { type: 'step_completed', data: { step: 'Code', trigger: 'engine_finished', next: 'Validate' } },
  ]
  const coded = await platform.sessions.commit(await platform.sessions.require(item), {
    ...{ actor: system, facts, runtime: { task: null, command: null } },
  })
  await handle({
    ...call,
    ...{ step: 'Validate', task_token: 'validate', at: coded.journal_head.sequence, entered: at(4000) },
  })
  const { runtime } = await platform.sessions.require(item)
  expect(runtime.task).toEqual({ step: 'Validate', token: 'validate' })
})

test('a machine that is only ever sent on is stopped by a fault, which Recover counts', async () => {
  const handle = createStepHandler(pieces.platform)
  const item = await atPlan()
  const stray = { ...callOf(item, { at: item.journal_head.sequence, away: limits.sentAway }), step: 'Decide' }
  await expect(handle(stray)).rejects.toThrow('in a row had nothing to do; Decide found the session at Plan')
  const fault = { error: 'StepFault', cause: '', ...stray, step: 'Recover' }
  const recovered = await handle(fault)
  expect(recovered).toMatchObject({ next: 'Plan', away: 0 })
  // Told again, it is the same fault.
  expect(await handle(fault)).toMatchObject({ next: 'Plan' })
  expect((await pieces.platform.sessions.require(item)).document.infra_failures).toBe(1)
})
