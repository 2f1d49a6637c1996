import type { Command, Result } from '../../lib/session/protocol.ts'
import { aCheckpoint, aContract, aResult, sha } from './sessions.ts'

/** What commands come to where nothing is really done: each goes well, and the contract is red or green as is said. */
export const quickWork = ({ step, session }: Command, verdict: 'failed' | 'passed'): Result => {
  const results = [aResult({ verdict, output_tail: 'x'.repeat(4000) })]
  switch (step) {
    case 'Prepare':
      return { outcome: step, base: sha('a'), start_commit: sha('a'), tree: sha('b'), warnings: [] }
    case 'Draft':
      return {
        ...{ outcome: step, contract: session.contract ?? aContract(), provenance: 'operator_supplied' },
        ...{ sources: [], warnings: [] },
      }
    case 'Baseline':
      return { outcome: step, results: [aResult({ verdict: 'failed' })], captures: {} }
    case 'Code':
      return {
        ...{ outcome: step, status: 'finished', exit_code: 0, signal: null, duration_ms: 1, output_bytes: 0 },
        ...{ artifact: null, survivors: 0, changed: true, touched: true, checkpoint: aCheckpoint() },
        ...{ report: null, nomination: null, guidance_applied: 0 },
        usage: { input_tokens: null, output_tokens: null, cost_usd: null, complete: false },
      }
    case 'Validate':
      return { outcome: step, results, tree_edited: false }
    default:
      return { outcome: 'Preflight', problems: [] }
  }
}
