import { OpenAPIHono } from '@hono/zod-openapi'
import { requestId } from 'hono/request-id'
import { secureHeaders } from 'hono/secure-headers'
import { GatehouseError } from '../../lib/errors.ts'
import { fieldErrors } from '../../lib/field-errors.ts'
import type { Platform } from '../../lib/store/platform.ts'
import { authenticate, authorise } from './auth.ts'
import type { Env } from './env.ts'
import { idempotency } from './idempotency.ts'
import { limitBody, requireJson } from './input.ts'
import type { Log } from './log.ts'
import { problem, toGatehouseError } from './problem.ts'
import { archiveRoutes } from './routes/archive.ts'
import { branchRoutes } from './routes/branches.ts'
import { controlRoutes } from './routes/controls.ts'
import { decisionRoutes } from './routes/decisions.ts'
import { historyRoutes } from './routes/history.ts'
import { importRoutes } from './routes/imports.ts'
import { journalRoutes } from './routes/journal.ts'
import { journalLineRoutes } from './routes/journal-lines.ts'
import { pagePolicy, referenceRoutes } from './routes/reference.ts'
import { reviewRoutes } from './routes/review.ts'
import { serviceRoutes } from './routes/service.ts'
import { sessionRoutes } from './routes/sessions.ts'
import { snapshotRoutes } from './routes/snapshot.ts'
import { workerRoutes } from './routes/worker.ts'

/**
 * @module
 * The HTTP API (API.md) over a platform, free of any host: a Lambda adapter or a Node server calls its `fetch`.
 */
export const createApp = (platform: Platform, options: { version: string; log: Log }) => {
  const app = new OpenAPIHono<Env>({
    strict: false,
    defaultHook: (result) => {
      if (!result.success)
        throw new GatehouseError('invalid_request', 'the request does not validate', {
          errors: fieldErrors(result.error.issues),
        })
    },
  })

  app.onError((error, c) => {
    const told = toGatehouseError(error)
    if (told.status >= 500) {
      options.log({
        level: 'error',
        message: told.message,
        request_id: c.get('requestId'),
        error: error.stack ?? String(error),
      })
    }
    return problem(c, told)
  })
  app.notFound((c) =>
    problem(c, new GatehouseError('not_found', `there is no ${c.req.method} ${c.req.path}`)),
  )

  app.use(requestId({ limitLength: 128 }))
  app.use(secureHeaders({ contentSecurityPolicy: pagePolicy, xFrameOptions: 'DENY' }))
  app.use(limitBody)
  serviceRoutes(app, options.version)
  referenceRoutes(app)
  app.use(
    '/v1/*',
    authenticate(platform),
    authorise(app),
    requireJson({ plainText: true }),
    idempotency(platform),
  )
  app.use('/worker/v1/*', authenticate(platform), authorise(app), requireJson({ plainText: false }))
  sessionRoutes(app, platform)
  decisionRoutes(app, platform)
  controlRoutes(app, platform)
  reviewRoutes(app, platform)
  branchRoutes(app, platform)
  journalRoutes(app, platform, options.log)
  journalLineRoutes(app, platform)
  snapshotRoutes(app, platform)
  archiveRoutes(app, platform)
  importRoutes(app, platform)
  historyRoutes(app, platform)
  workerRoutes(app, platform)

  app.openAPIRegistry.registerComponent('securitySchemes', 'token', { type: 'http', scheme: 'bearer' })
  app.doc31('/openapi.json', {
    openapi: '3.1.0',
    info: {
      title: 'Gatehouse',
      version: options.version,
      description: 'A hosted backend for coding sessions.',
    },
    security: [{ token: [] }],
  })
  return app
}
