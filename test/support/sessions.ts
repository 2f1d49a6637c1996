import { contractHash } from '../../lib/contract/hash.ts'
import { type CheckResult, type Contract, contractSchema } from '../../lib/contract/schema.ts'
import { newId } from '../../lib/ids.ts'
import type { Actor } from '../../lib/journal/entry.ts'
import type { Fact, RecordFact } from '../../lib/journal/facts.ts'
import type { Document } from '../../lib/session/document.ts'
import { type Change, changeItem, createItem, type Seal, type SessionItem } from '../../lib/session/item.ts'
import type { State, Step } from '../../lib/session/states.ts'

export const ada: Actor = { kind: 'person', id: 'ada' }
export const system: Actor = { kind: 'system', id: 'test' }

/** The moment at which the fake clocks of these tests begin. */
export const epochMs = Date.UTC(2030, 0, 1)
export const at = (ms: number): string => new Date(epochMs + ms).toISOString()

/** A seal with which nothing is left to be done, of an object that need not be there. */
export const aSeal = (): Seal => ({
  ...{ sha256: '0'.repeat(64), bytes: 1, through: 0, frame_entries: 1, sealed_at: at(0), cleared: true },
})

export const aContract = (more: Partial<Contract> = {}): Contract => ({
  ...contractSchema.parse({ checks: [{ name: 'unit', command: './run-tests' }] }),
  ...more,
})

export const aResult = (more: Partial<CheckResult> = {}): CheckResult => {
  const verdict = more.verdict ?? 'passed'
  return {
    ...{ name: 'unit', passed: verdict === 'passed', verdict, reason: 'ok', exit_code: 0, signal: null },
    ...{ output_head: '', output_tail: '', output_bytes: 0, artifact: null, duration_ms: 5 },
    ...{ timed_out: false, deadline_clamped: false, runs: 1 },
    ...more,
  }
}

type Created = Extract<RecordFact, { type: 'session_created' }>

/** The fact that a session begins with, with what a test is about put over it. */
export const creation = (id: string, team: string, more: Partial<Created['data']> = {}): Created => {
  const contract = more.contract === undefined ? aContract() : more.contract
  return {
    type: 'session_created',
    data: {
      id,
      team,
      ...{ repo: 'https://example.com/repo', intent: 'Make it work', requested_base: null },
      ...{ requested_engine: 'auto', engine: 'external:command', engine_command: 'true' },
      ...{ mode: 'supervise' as const, verify: 'clean' as const, contract },
      contract_hash: contract ? contractHash(contract) : null,
      contract_provenance: contract ? 'operator_supplied' : null,
      ...{ max_iterations: 8, repair_invokes: null, transient_retries: null, max_wall_secs: 3600 },
      ...{ until: null, yes_ship: null, budget_usd: null },
      ...{ keep_workspace_on_failure: false, keep_workspace_on_cancel: false },
      ...{ resumed_from: null, steering_messages: [], checkpoint: null },
      ...{ delivery: { kind: 'branch' as const, branch: null }, labels: {}, requested_by: 'ada' },
      ...more,
    },
  }
}

/** The change that makes a new session. */
export const creationChange = (id: string, team: string, more: Partial<Created['data']> = {}): Change => ({
  actor: ada,
  facts: [
    creation(id, team, more),
    { type: 'engine_selected', data: { engine: 'external:command', reason: 'test' } },
  ],
})

/** A new session in memory. */
export const newSession = (more: Partial<Created['data']> = {}): SessionItem => {
  const id = newId('ses')
  return createItem({ team: 'team', id }, creationChange(id, 'team', more), at(0))
}

/** A session that was brought to a state and a step by facts alone, whether or not the lifecycle leads there. */
export const sessionAt = (state: State, step: Step, facts: readonly Fact[] = []): SessionItem => {
  const item = newSession()
  const there: Fact[] = [
    { type: 'step_completed', data: { step: 'Admit', trigger: 'test', next: step } },
    { type: 'state_changed', data: { from: 'created', to: state, trigger: 'test' } },
    ...facts,
  ]
  return changeItem(item, { actor: system, facts: there }, at(1000))
}

export const sha = (digit: string): string => digit.repeat(40).slice(0, 40)

export const aCheckpoint = (): NonNullable<Document['checkpoint']> => ({
  id: 'one',
  commit: sha('c'),
  tree: sha('d'),
  bundle: null,
  bundle_sha256: null,
})
