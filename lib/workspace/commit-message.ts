import { limits } from '../limits.ts'

const flatten = (text: string): string =>
  text
    .toWellFormed()
    .replace(/[\p{Cc}\p{Z}]+/gu, ' ')
    .trim()

/**
 * One line of at most `limits.subject` characters (code points) that says what was asked. A longer intent is cut between
 * characters as people see them, with an ellipsis (spec/coder-session.md 11).
 */
export const commitSubject = (intent: string): string => {
  const line = flatten(intent)
  if (line === '') return 'Gatehouse session'
  if ([...line].length <= limits.subject) return line
  let cut = ''
  let length = 0
  for (const { segment } of new Intl.Segmenter('en', { granularity: 'grapheme' }).segment(line)) {
    const size = [...segment].length
    if (length + size > limits.subject - 1) break
    cut += segment
    length += size
  }
  return `${cut.trimEnd()}…`
}

/** The message of a delivered commit: the subject, and the session as a trailer. */
export const commitMessage = (intent: string, sessionId: string): string =>
  `${commitSubject(intent)}\n\nGatehouse-Session: ${flatten(sessionId)}\n`
