import { createRoute, type OpenAPIHono } from '@hono/zod-openapi'
import { drained } from '../../../lib/store/effects.ts'
import { exportArchive } from '../../../lib/store/export-archive.ts'
import { exportRecordsOf } from '../../../lib/store/export-records.ts'
import type { Platform } from '../../../lib/store/platform.ts'
import { person } from '../auth.ts'
import type { Env } from '../env.ts'
import { bytes, needs, problems } from '../openapi.ts'
import { sessionParams } from '../schemas.ts'

const archive = createRoute({
  method: 'get',
  security: needs('viewer'),
  path: '/v1/sessions/{id}/archive',
  summary: 'The whole session as one archive',
  description:
    'A gzipped tar file: `manifest.json` with the size and SHA-256 of every other file, `document.json`, `artifacts/…`, ' +
    '`bundles/…`, and `journal.jsonl` with the very lines of the journal. The archive of a finished session can be ' +
    'imported by its own team (`POST /v1/imports`). The same session always gives the same files.',
  request: { params: sessionParams },
  responses: { 200: bytes('application/gzip', 'The archive'), ...problems },
})

const records = createRoute({
  method: 'get',
  security: needs('viewer'),
  path: '/v1/sessions/{id}/records',
  summary: 'The session’s records in the interchange form',
  description:
    'The records of protocol 1.0, one a line, with their ids, times and branches; `sequence` is the place among them. A ' +
    'session that holds a record which that protocol has no place for is refused with `not_exportable`; `record` ' +
    'names its type and entry, and how many records stand before it.',
  request: { params: sessionParams },
  responses: { 200: bytes('application/x-ndjson', 'The records'), ...problems },
})

export const archiveRoutes = (app: OpenAPIHono<Env>, platform: Platform): void => {
  const load = (c: { get: (name: 'principal') => Env['Variables']['principal'] }, id: string) =>
    drained(platform, { team: person(c.get('principal')).team, id })

  app.openapi(archive, async (c) => {
    const item = await load(c, c.req.valid('param').id)
    return c.body(await exportArchive(platform, item), 200, {
      'content-type': 'application/gzip',
      'content-disposition': `attachment; filename="${item.id}.tar.gz"`,
    })
  })

  app.openapi(records, async (c) => {
    const item = await load(c, c.req.valid('param').id)
    const lines = await exportRecordsOf(platform, item)
    return c.body(lines.pipeThrough(new TextEncoderStream()), 200, {
      'content-type': 'application/x-ndjson',
      'content-disposition': `attachment; filename="${item.id}.ndjson"`,
    })
  })
}
