import type { Fact } from '../journal/facts.ts'
import type { Document } from './document.ts'

/**
 * The fact that starts the run's one clock (spec/coder-session.md 8): an absolute deadline that every check and engine
 * shares. A person who sets the work going anew gives it a new one; nothing else does.
 */
export const startClock = (document: Document, now: number): Fact => ({
  type: 'run_started',
  data: { deadline_at: new Date(now + document.max_wall_secs * 1000).toISOString() },
})
