import { limits } from '../limits.ts'
import { ellipsised } from '../text/shorten.ts'
import { visible } from '../text/visible.ts'

const flatten = (text: string): string => visible(text.replace(/[\s\u0085\p{Z}]+/gu, ' ').trim())

/**
 * One line of at most `limits.subject` characters (code points) that says what was asked. A longer intent is cut between
 * characters as people see them, with an ellipsis (spec/coder-session.md 11); hidden characters are written out.
 */
export const commitSubject = (intent: string): string => {
  const line = flatten(intent)
  if (line === '') return 'Gatehouse session'
  return ellipsised(line, limits.subject)
}

/** The message of a delivered commit: the subject, and the session as a trailer. */
export const commitMessage = (intent: string, sessionId: string): string =>
  `${commitSubject(intent)}\n\nGatehouse-Session: ${flatten(sessionId)}\n`
