import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi'
import { idSchema } from '../../../lib/ids.ts'
import { typeIdOf, uuidOf } from '../../../lib/journal/agent/uuid.ts'
import { canonical } from '../../../lib/journal/entry.ts'
import { limits } from '../../../lib/limits.ts'
import { startSessionSchema } from '../../../lib/session/start.ts'
import { importArchive } from '../../../lib/store/import-archive.ts'
import { importRecordsOf } from '../../../lib/store/import-records.ts'
import { objectKey } from '../../../lib/store/keys.ts'
import type { Platform } from '../../../lib/store/platform.ts'
import { runImport } from '../../../lib/store/run-import.ts'
import { person } from '../auth.ts'
import { created } from '../creation.ts'
import type { Env } from '../env.ts'
import { answers, bodyProblems, jsonBody, needs } from '../openapi.ts'
import { sessionSchema } from '../schemas.ts'
import { sessionView } from '../views.ts'

const importId = idSchema('imp')

const begin = createRoute({
  method: 'post',
  security: needs('operator'),
  path: '/v1/imports',
  summary: 'Begin an import: an address to upload to',
  description:
    'PUT the bytes to `upload_url` before `expires_at`, then say with `POST /v1/imports/{import_id}` what they are. What ' +
    'is not imported is removed after a day.',
  request: { body: jsonBody(z.strictObject({})) },
  responses: {
    201: answers(
      z.object({ import_id: importId, upload_url: z.string(), expires_at: z.string() }),
      'Where to upload to',
    ),
    ...bodyProblems,
  },
})

const run = createRoute({
  method: 'post',
  security: needs('operator'),
  path: '/v1/imports/{import_id}',
  summary: 'Make a session of what was uploaded',
  description:
    'An `archive` of a finished session comes back as that session. `records` of the interchange form, one a line, begin a ' +
    'new session of the records’ own id, which then starts as `start` says. Everything is checked and replayed first: what ' +
    'is refused (`invalid_archive`; `invalid_records` with the first refused `line`, counted from 1, and its `outcome`) ' +
    'leaves nothing behind and is to be uploaded anew. Nothing is merged: a session that is there already is ' +
    '`already_exists`. A repeat answers with the session that the first made.',
  request: {
    params: z.object({ import_id: importId }),
    body: jsonBody(
      z.discriminatedUnion('kind', [
        z.strictObject({ kind: z.literal('archive') }),
        z.strictObject({ kind: z.literal('records'), start: startSessionSchema }),
      ]),
    ),
  },
  responses: { 201: answers(sessionSchema, 'The session'), ...bodyProblems },
})

export const importRoutes = (app: OpenAPIHono<Env>, platform: Platform): void => {
  app.openapi(begin, async (c) => {
    const { team } = person(c.get('principal'))
    const import_id = typeIdOf('imp', uuidOf(c.get('subjectId')))
    const expires_at = new Date(platform.clock() + limits.presignSecs * 1000).toISOString()
    const upload_url = await platform.blobs.uploadUrl(objectKey.upload(team, import_id))
    return c.json({ import_id, upload_url, expires_at }, 201)
  })

  app.openapi(run, async (c) => {
    const who = person(c.get('principal'))
    const upload = { team: who.team, import_id: c.req.valid('param').import_id }
    const asked = c.req.valid('json')
    const item = await runImport(platform, upload, canonical(asked), () =>
      asked.kind === 'archive'
        ? importArchive(platform, upload)
        : importRecordsOf(platform, upload, (id) => created(platform, id, asked.start, who)),
    )
    const session = sessionView(item)
    return c.json(session, 201, { location: `/v1/sessions/${item.id}`, etag: `"${session.version}"` })
  })
}
