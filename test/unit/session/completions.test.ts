import { describe, expect, it } from 'vitest'
import type { CheckResult } from '../../../lib/contract/schema.ts'
import { complete } from '../../../lib/session/completions.ts'
import { changeItem, type SessionItem } from '../../../lib/session/item.ts'
import type { Result } from '../../../lib/session/protocol.ts'
import { aContract, aResult, at, epochMs, sessionAt, sha } from '../../support/sessions.ts'

const worker = { kind: 'worker', id: 'wrk' } as const
const completed = (item: SessionItem, result: Result): SessionItem =>
  changeItem(
    item,
    complete(item, result, {
      ...{
        actor: worker,
        events: [],
        artifact: 'results',
        reviewId: 'rev_01h455vb4pex5vsknk084sn02q',
        now: epochMs,
      },
    }),
    at(2000),
  )

describe('a result', () => {
  it('leaves no check’s output on the session item, whichever way it comes', () => {
    const output = { output_head: 'HEAD OF IT', output_tail: 'TAIL OF IT' }
    const baseline = completed(sessionAt('contract_proposed', 'Baseline'), {
      outcome: 'Baseline',
      results: [aResult({ verdict: 'failed', ...output })],
      captures: { size: { digest: 'd', number: 1, result: aResult({ verdict: 'captured', ...output }) } },
    })
    const validated = completed(sessionAt('running', 'Validate'), {
      ...{ outcome: 'Validate', tree_edited: false, results: [aResult({ verdict: 'failed', ...output })] },
    })
    expect(JSON.stringify([baseline, validated])).not.toMatch(/(HEAD|TAIL) OF IT/)
  })

  it('of a green verification without a review, or of one that leaves a check out, is refused', () => {
    const verify = (results: CheckResult[]) => () =>
      completed(sessionAt('running', 'Verify'), {
        ...{ outcome: 'Verify', results, tree_edited: false, review: null },
      })
    expect(verify([aResult()])).toThrow(expect.objectContaining({ code: 'invalid_request' }))
    expect(verify([])).toThrow(expect.objectContaining({ code: 'invalid_request' }))
    expect(verify([aResult({ name: 'another' })])).toThrow(
      expect.objectContaining({ code: 'invalid_request' }),
    )
  })

  it('whose draft does not validate ends the session as a matter of configuration', () => {
    const item = completed(sessionAt('created', 'Draft'), {
      ...{ outcome: 'Draft', contract: aContract({ checks: [] }), provenance: 'runtime_generated' },
      ...{ sources: [], warnings: [] },
    })
    expect(item.document).toMatchObject({ state: 'failed', failure_kind: 'configuration' })
  })

  it('that comes after the end is told that it is superseded', () => {
    const late = () => completed(sessionAt('abandoned', 'Deliver'), { outcome: 'Preflight', problems: [] })
    expect(late).toThrow(expect.objectContaining({ code: 'superseded' }))
  })

  it('of another step than the session’s is refused', () => {
    const wrong = () =>
      completed(sessionAt('running', 'Code'), {
        ...{ outcome: 'Prepare', base: sha('a'), start_commit: sha('a'), tree: sha('b'), warnings: [] },
      })
    expect(wrong).toThrow(expect.objectContaining({ code: 'illegal_transition' }))
  })
})
