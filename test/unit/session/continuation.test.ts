import { describe, expect, it } from 'vitest'
import { newId } from '../../../lib/ids.ts'
import { continuation } from '../../../lib/session/continuation.ts'
import { cancel } from '../../../lib/session/controls.ts'
import { creation } from '../../../lib/session/creation.ts'
import { createItem } from '../../../lib/session/item.ts'
import type { ContinueSession } from '../../../lib/session/start.ts'
import { aCheckpoint, aContract, ada, at, sha } from '../../support/sessions.ts'
import { aRun, failed } from './results.ts'
import { setOut, setOutTo } from './road.ts'

type Created = Parameters<typeof setOut>[0]
const request: ContinueSession = { intent: 'Go on' }

/** The session that a continuation begins with. */
const begun = (of: ReturnType<typeof setOut>, more: Partial<ContinueSession> = {}) => {
  const { start, legacy } = continuation(of.document, { ...request, ...more })
  const id = newId('ses')
  return createItem(
    { team: 'team', id },
    creation({ id, team: 'team', repo: start.repo }, start, ada, legacy),
    at(0),
  ).document
}

const merged = (more: Created = {}) => {
  const road = setOutTo('Settle', more)
  road.enter()
  return road
}
/** A session that was cancelled in its second iteration, with its work kept. */
const retained = (more: Created = {}) => {
  const road = setOut({ keep_workspace_on_cancel: true, steering_messages: ['hint'], ...more })
  road.iterate(aRun(), failed)
  road.write(cancel(road.item, null, ada))
  road.enter()
  return road
}

describe('a session that goes on from another', () => {
  it('starts from the delivered commit, with a contract of its own', () => {
    const before = merged()
    expect(begun(before)).toMatchObject({
      ...{ resumed_from: before.document.id, requested_base: sha('e'), checkpoint: null, contract: null },
      ...{ intent: 'Go on', steering_messages: [], mutated: false, contract_provenance: null },
    })
  })

  it('starts from retained work, with its contract and its guidance still to be given', () => {
    const before = retained()
    expect(begun(before)).toMatchObject({
      ...{ resumed_from: before.document.id, requested_base: sha('a'), checkpoint: aCheckpoint() },
      ...{ steering_messages: ['hint'], guidance_applied: 0, contract: before.document.contract },
      ...{ iterations: 0, infra_failures: 0, total_failures: 0 },
    })
  })

  it('can’t conclude that nothing should change from work that it did not begin', () => {
    expect(begun(retained()).mutated).toBe(true)
  })

  it('makes a contract no more to be trusted by taking it over, and one that comes with the request is the caller’s', () => {
    const before = retained({ mode: 'auto', contract_provenance: 'model_derived' })
    expect(before.document.contract_provenance).toBe('model_derived')
    expect(begun(before).contract_provenance).toBe('model_derived')
    const contract = aContract({ setup: ['make'] })
    expect(begun(before, { contract })).toMatchObject({ contract, contract_provenance: 'operator_supplied' })
  })

  it('keeps the options of the one before where the request says nothing else, but no authorisation', () => {
    const before = retained({ mode: 'auto', max_iterations: 3, budget_usd: 2, yes_ship: { by: 'grace' } })
    expect(begun(before)).toMatchObject({ mode: 'auto', max_iterations: 3, budget_usd: 2, yes_ship: null })
    expect(begun(before, { mode: 'supervise', yes_ship: true })).toMatchObject({
      ...{ mode: 'supervise', yes_ship: { by: 'ada', void: false }, keep_workspace_on_cancel: true },
    })
  })
})

describe('a continuation is refused', () => {
  const refused = (road: ReturnType<typeof setOut>) =>
    expect(() => continuation(road.document, request)).toThrow(
      expect.objectContaining({ code: 'illegal_transition' }),
    )

  it('of a session that has not ended, or has not stopped', () => {
    refused(setOutTo('Review'))
    refused(setOutTo('Settle'))
  })

  it('where nothing was left to go on from', () => {
    refused(retained({ keep_workspace_on_cancel: false }))
    const early = setOut({ keep_workspace_on_cancel: true })
    early.write(cancel(early.item, null, ada))
    early.enter()
    refused(early)
  })
})
