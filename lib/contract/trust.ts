import type { Provenance } from './schema.ts'

/**
 * The one definition of trust in a contract (spec/coder-session.md 2.3). What a model derived never
 * qualifies: the text it read is untrusted input.
 */
export const isTrusted = (provenance: Provenance): boolean => provenance !== 'model_derived'
