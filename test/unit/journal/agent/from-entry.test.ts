import { expect, it } from 'vitest'
import { newId } from '../../../../lib/ids.ts'
import { agentRecordOf } from '../../../../lib/journal/agent/from-entry.ts'
import { materialise } from '../../../../lib/journal/agent/state.ts'
import { chain, type Entry, emptyHead } from '../../../../lib/journal/entry.ts'
import { ReplayError } from '../../../../lib/journal/fold.ts'
import { foldState, type JournalState } from '../../../../lib/journal/state.ts'
import { documentSchema } from '../../../../lib/session/document.ts'
import { at, creation } from '../../../support/sessions.ts'
import { userSays } from './walk.ts'

const session = newId('ses')
const stamp = { sessionId: session, time: at(9), actor: { kind: 'system', id: 'test' } } as const
const { entries } = chain(
  emptyHead,
  [
    creation(session, 'team', { labels: { ticket: '7' } }),
    { type: 'run_started', data: { deadline_at: at(10) } },
    { type: 'error', data: { message: 'seen and passed over' } },
  ],
  stamp,
)

/** An entry with a fact of the agent behind those, as it stands in a journal. */
const agentEntry = (type: string, data: Record<string, unknown>): Entry => {
  const [example] = chain(emptyHead, [{ type: 'error', data: { message: '' } }], stamp).entries
  if (!example) throw new Error('one fact is one entry')
  return { ...example, kind: 'record', sequence: entries.length, type, data }
}

const fold = (journal: readonly Entry[]): JournalState | null =>
  journal.reduce<JournalState | null>(foldState, null)

it('the session’s own first record stands for the agent’s, and its lifecycle is passed over', () => {
  const said = agentEntry('message_committed', { message: userSays(1) })
  const state = fold([...entries, said])
  if (!state) throw new Error('the journal has entries')
  expect(materialise(state.agent)).toMatchObject({
    ...{ session_id: session, tail_sequence: 3, active_branch_id: 'main' },
    configuration: { profile_id: 'external:command' },
    metadata: { 'dev.gatehouse.labels': { ticket: '7' } },
    messages: [{ type: 'user' }],
  })
})

it('a record that is not of its type stops the fold with its name and place', () => {
  const broken = agentEntry('message_committed', { message: {} })
  expect(() => fold([...entries, broken])).toThrow(ReplayError)
  expect(() => fold([...entries, broken])).toThrow(/message_committed/)
})

it('a first record that was imported is the one that counts, and no part of the document', () => {
  const agent = { profile_id: 'minimal-assistant', metadata: { 'com.example': { made: 'elsewhere' } } }
  const stated = {
    ...creation(session, 'team', { agent, labels: { ticket: '7' } }),
    context: { branch: null },
  }
  const state = fold(chain(emptyHead, [stated], stamp).entries)
  if (!state) throw new Error('the journal has an entry')
  expect(materialise(state.agent)).toMatchObject({
    configuration: { profile_id: 'minimal-assistant' },
    metadata: agent.metadata,
    active_branch_id: null,
  })
  expect(documentSchema.parse(state.document)).toEqual(state.document)
})

it('what stands around a record in its entry belongs to the record', () => {
  const around = {
    causation_id: newId('evt'),
    correlation_id: newId('run'),
    metadata: { 'com.example': 1 },
  }
  const said = { ...agentEntry('message_committed', { message: userSays(1) }), ...around }
  expect(agentRecordOf(said)).toMatchObject(around)
})
