import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi'
import { GatehouseError } from '../../../lib/errors.ts'
import { branchSchema } from '../../../lib/journal/agent/records.ts'
import { isOnLine, type Line, lineOf } from '../../../lib/journal/lineage.ts'
import { entriesOf } from '../../../lib/journal/lines.ts'
import type { SessionItem } from '../../../lib/session/item.ts'
import { drained } from '../../../lib/store/effects.ts'
import type { Platform } from '../../../lib/store/platform.ts'
import { person } from '../auth.ts'
import type { Env } from '../env.ts'
import { needs, problems } from '../openapi.ts'
import { replayed } from '../replay.ts'
import { sessionParams } from '../schemas.ts'

const journal = createRoute({
  method: 'get',
  security: needs('viewer'),
  path: '/v1/sessions/{id}/journal',
  summary: 'The whole journal or the line of a branch, one entry a line',
  description:
    'A branch’s line is what lies on its ancestors up to where it was forked off, and then what is its own.',
  request: { params: sessionParams, query: z.strictObject({ branch: branchSchema.optional() }) },
  responses: { 200: { description: 'The journal as application/x-ndjson' }, ...problems },
})

/** The line of a branch at the session's head. Throws `not_found` for a branch that is not there. */
const lineAt = async (platform: Platform, item: SessionItem, branch: string): Promise<Line> => {
  const { agent } = await replayed(() => platform.states.at(item, item.journal_head.sequence))
  const line = lineOf(agent, branch)
  if (line === null) throw new GatehouseError('not_found', `session ${item.id} has no branch ${branch}`)
  return line
}

/**
 * The journal's lines, each as it was written and in its place, no fewer than the session had. Throws `journal_damaged`,
 * which breaks the answer off: what is told is never a part that looks like the whole.
 */
async function* texts({ journals }: Platform, item: SessionItem, line: Line | null): AsyncGenerator<string> {
  let next = 0
  for await (const lines of journals.segments(item)) {
    const entries = entriesOf(item.id, next, lines)
    next += lines.length
    const wanted = lines.filter((_, at) => line === null || (entries[at] && isOnLine(line, entries[at])))
    if (wanted.length > 0) yield wanted.map((text) => `${text}\n`).join('')
  }
  if (next <= item.journal_head.sequence)
    throw new GatehouseError('journal_damaged', `entry ${next} of ${item.id} is missing`)
}

export const journalLineRoutes = (app: OpenAPIHono<Env>, platform: Platform): void => {
  app.openapi(journal, async (c) => {
    const { team } = person(c.get('principal'))
    const item = await drained(platform, { team, id: c.req.valid('param').id })
    const { branch } = c.req.valid('query')
    const line = branch === undefined ? null : await lineAt(platform, item, branch)
    const bytes = ReadableStream.from(texts(platform, item, line)).pipeThrough(new TextEncoderStream())
    return c.body(bytes, 200, { 'content-type': 'application/x-ndjson' })
  })
}
