import type { Document } from './document.ts'
import type { FailureKind } from './states.ts'

/**
 * Whether unfinished work outlives a session that ends so, for another to go on from. Partial work survives the limits
 * that cut it short, whatever was asked for (spec/coder-session.md 3, 8).
 */
export const keepsWork = (document: Document, end: FailureKind | 'cancelled'): boolean => {
  switch (end) {
    case 'cancelled':
      return document.keep_workspace_on_cancel
    case 'budget_exhausted':
    case 'auth_required':
    // Nobody answered in time, which says nothing against the work that waits for the answer.
    case 'stalled':
    // Nor does a fault of ours.
    case 'infrastructure':
      return true
    case 'error':
      return document.keep_workspace_on_failure || document.iterations >= document.max_iterations
    case 'configuration':
      return document.keep_workspace_on_failure
  }
}
