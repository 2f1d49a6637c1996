import type { CheckResult } from '../../../lib/contract/schema.ts'
import type { Result } from '../../../lib/session/protocol.ts'
import { aCheckpoint, aContract, aResult, sha } from '../../support/sessions.ts'

export type Of<Outcome extends Result['outcome']> = Extract<Result, { outcome: Outcome }>

/** The tree that a session of these tests starts from. */
export const startTree = sha('b')

/** A run of the engine that ended well and changed something, with what a test is about put over it. */
export const aRun = (more: Partial<Of<'Code'>> = {}): Of<'Code'> => ({
  ...{ outcome: 'Code', status: 'finished', exit_code: 0, signal: null, duration_ms: 1, output_bytes: 0 },
  ...{ artifact: null, survivors: 0, changed: true, touched: true, checkpoint: aCheckpoint() },
  ...{ report: null, nomination: null, guidance_applied: 0 },
  usage: { input_tokens: null, output_tokens: null, cost_usd: null, complete: false },
  ...more,
})

/** A run that wrote to nothing. */
export const anIdleRun = (more: Partial<Of<'Code'>> = {}): Of<'Code'> =>
  aRun({ changed: false, touched: false, checkpoint: { ...aCheckpoint(), tree: startTree }, ...more })

export const aReport = (
  status: NonNullable<Of<'Code'>['report']>['status'],
  reset_at: string | null = null,
) => ({
  ...{ status, reason: `said ${status}`, reset_at },
})

export const aNomination = (kind: NonNullable<Of<'Code'>['nomination']>['kind'] = 'premise_wrong') => ({
  ...{ kind, summary: 'Nothing to do', evidence: 'I looked' },
})

export const passed = aResult()
export const failed = aResult({ verdict: 'failed', reason: 'exit_code', exit_code: 1 })
export const unrun = aResult({ verdict: 'could_not_run', reason: 'signal', exit_code: null })

export const validation = (...results: CheckResult[]): Of<'Validate'> => ({
  ...{ outcome: 'Validate', results, tree_edited: false },
})

type Review = NonNullable<Of<'Verify'>['review']>

const aReview = (more: Partial<Review> = {}): Review => ({
  ...{ kind: 'change', base: sha('a'), commit: sha('e'), tree: sha('d'), finding: null },
  ...{ stat: { files: 1, insertions: 1, deletions: 0 }, patch_full_bytes: 9, body_artifact: 'review' },
  ...{ disclosed: [], checkpoint: aCheckpoint() },
  ...more,
})

/** What a verification finds: a change to review. */
export const verification = (
  results: CheckResult[] = [passed],
  more: Partial<Review> = {},
): Of<'Verify'> => ({
  ...{ outcome: 'Verify', results, tree_edited: false, review: aReview(more) },
})

/** What a verification finds where nothing was changed. */
export const aConclusion = (
  kind: Parameters<typeof aNomination>[0],
  results: CheckResult[] = [passed],
): Of<'Verify'> =>
  verification(results, {
    ...{ kind: 'finding', tree: startTree, finding: aNomination(kind) },
    checkpoint: { ...aCheckpoint(), tree: startTree },
  })

export const aPreflight = (
  ...kinds: Of<'Preflight'>['problems'][number]['failure_kind'][]
): Of<'Preflight'> => ({
  outcome: 'Preflight',
  problems: kinds.map((failure_kind) => ({ failure_kind, detail: `no ${failure_kind}` })),
})

export const aPreparation: Of<'Prepare'> = {
  ...{ outcome: 'Prepare', base: sha('a'), start_commit: sha('a'), tree: startTree, warnings: [] },
}

export const aDraft = (more: Partial<Of<'Draft'>> = {}): Of<'Draft'> => ({
  ...{ outcome: 'Draft', contract: aContract(), provenance: 'operator_supplied', sources: [], warnings: [] },
  ...more,
})

export const aBaseline = (...results: CheckResult[]): Of<'Baseline'> => ({
  ...{ outcome: 'Baseline', results, captures: {} },
})

export const aDelivery: Of<'Deliver'> = {
  ...{ outcome: 'Deliver', delivered: { ok: true, branch: 'gatehouse/x', commit: sha('e') } },
}
export const aFailedDelivery: Of<'Deliver'> = {
  ...{ outcome: 'Deliver', delivered: { ok: false, problem: 'moved', detail: 'the branch moved' } },
}
