import { z } from 'zod'
import { limits } from './limits.ts'
import { ServiceError } from './service-error.ts'

const position = z.tuple([z.string(), z.int().min(0)])

/**
 * A page of `items`, and the token of the next one while there is more. `subject` says what is being listed: a token
 * given for something else is refused with `InvalidToken`. `maxResults` 0 or absent asks for the default size.
 */
export function pageOf<T>(
  items: readonly T[],
  subject: string,
  { maxResults, nextToken }: { maxResults?: number | undefined; nextToken?: string | undefined },
): { page: T[]; nextToken?: string } {
  const from = nextToken === undefined ? 0 : positionIn(nextToken, subject)
  const to = from + (maxResults || limits.defaultPageSize)
  const page = items.slice(from, to)
  return to < items.length ? { page, nextToken: tokenAt(subject, to) } : { page }
}

const tokenAt = (subject: string, at: number) =>
  Buffer.from(JSON.stringify([subject, at])).toString('base64url')

function positionIn(token: string, subject: string): number {
  const invalid = new ServiceError('InvalidToken', "Invalid Token: 'Invalid token'")
  try {
    const [of, at] = position.parse(JSON.parse(Buffer.from(token, 'base64url').toString()))
    if (of === subject) return at
  } catch {
    throw invalid
  }
  throw invalid
}

/**
 * A page of a list that grows at its end, newest first, of what `wanted` keeps. Its token stands for a place in the
 * list, so that what is added meanwhile neither repeats nor hides anything.
 */
export function pageOfNewest<T>(
  oldestFirst: readonly T[],
  subject: string,
  { maxResults, nextToken }: { maxResults?: number | undefined; nextToken?: string | undefined },
  wanted: (item: T) => boolean,
): { page: T[]; nextToken?: string } {
  const size = maxResults || limits.defaultPageSize
  const page: T[] = []
  let at = nextToken === undefined ? oldestFirst.length : positionIn(nextToken, subject)
  while (at > 0) {
    const item = oldestFirst[at - 1]
    if (item !== undefined && wanted(item)) {
      if (page.length === size) return { page, nextToken: tokenAt(subject, at) }
      page.push(item)
    }
    at -= 1
  }
  return { page }
}
