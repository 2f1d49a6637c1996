import ignore from 'ignore'
import { limits } from '../limits.ts'
import { headLength, tailStart } from '../text/shorten.ts'
import { printable } from '../text/utf8.ts'
import type { CheckResult, VerdictReason } from './schema.ts'

/** Name of the result that says whether protected paths are as the base has them. */
export const protectCheck = 'protect'
/** Name of the result that says which paths are repositories of their own and could not be delivered. */
export const embeddedCheck = 'no-embedded-repository'

/** What is wrong with a protect pattern, or null. `index` is its place in the list. */
export const patternProblem = (pattern: string, index: number): string | null => {
  if (pattern.trim() === '') return 'the pattern is empty'
  if (/[\0\r\n]/.test(pattern)) return 'a pattern is one line'
  if (pattern.startsWith('#')) return 'this is a comment; escape the # as \\#'
  if (pattern.startsWith('!') && index === 0)
    return 'an exception has to follow the pattern that it is taken from'
  if (/(^|[^\\])(\\\\)*\\$/.test(pattern)) return 'a pattern cannot end with a single backslash'
  if (pattern.split('/').some((part) => part === '..' || part === '.')) {
    return 'a pattern is relative to the repository and cannot hold . or .. as a part'
  }
  return canMatch(pattern) ? null : 'this is not a gitignore pattern'
}

/**
 * Those of the changed paths that the patterns protect, in the order given. Case counts, as in the
 * repository.
 */
export const protectedChanges = (patterns: readonly string[], changedPaths: readonly string[]): string[] => {
  const rules = ignore({ ignorecase: false }).add([...patterns])
  return changedPaths.filter((path) => ignore.isPathValid(path) && rules.ignores(path))
}

/** The one result for all protected paths: failed with the changed ones, passed when there are none. */
export const protectResult = (paths: readonly string[]): CheckResult =>
  pathsResult(protectCheck, paths, 'protected_path_changed')

/** A failed result with the embedded repositories' paths; null when there are none. */
export const embeddedResult = (paths: readonly string[]): CheckResult | null =>
  paths.length === 0 ? null : pathsResult(embeddedCheck, paths, 'embedded_repository')

const canMatch = (pattern: string): boolean => {
  try {
    ignore({ ignorecase: false }).add(pattern).ignores('a')
    return true
  } catch {
    return false
  }
}

const pathsResult = (name: string, paths: readonly string[], reason: VerdictReason): CheckResult => {
  const passed = paths.length === 0
  const bytes = Buffer.from(paths.map((path) => `${path}\n`).join(''))
  const head = headLength(bytes, limits.outputHead)
  const tail = Math.max(head, tailStart(bytes, limits.outputTail))
  return {
    ...{ name, passed, verdict: passed ? 'passed' : 'failed', reason: passed ? 'ok' : reason },
    ...{ exit_code: null, signal: null },
    output_head: printable(bytes.subarray(0, head)),
    output_tail: printable(bytes.subarray(tail)),
    output_bytes: bytes.length,
    ...{ artifact: null, duration_ms: 0, timed_out: false, deadline_clamped: false, runs: 1 },
  }
}
