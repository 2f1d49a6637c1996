import { createHash } from 'node:crypto'
import canonicalize from 'canonicalize'
import type { Contract } from './schema.ts'

/** The contract's canonical bytes: RFC 8785. */
export const canonicalContract = (contract: Contract): string => canonicalize(contract) ?? ''

/**
 * The identity of a contract: SHA-256 over its canonical bytes. Key order and layout of the source don't
 * count.
 */
export const contractHash = (contract: Contract): `sha256:${string}` =>
  `sha256:${createHash('sha256').update(canonicalContract(contract), 'utf8').digest('hex')}`
